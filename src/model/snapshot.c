/* SPDX-License-Identifier: Apache-2.0 */
#include "model/snapshot.h"

#include "base/base.h"
#include "base/json.h"
#include "model/limits.h"
#include "model/sandbox.h"
#include "model/text.h"

/* A few short texts: a longer record was not written by Hutch. */
#define SNAPSHOT_TEXT_MAX  (64 * KiB)
#define SNAPSHOT_ARENA_MAX (256 * KiB)
#define SNAPSHOT_FIRST     512

static const char *const snapshot_state_names[] = {
        [SNAPSHOT_CREATING] = "Creating",
        [SNAPSHOT_READY] = "Ready",
        [SNAPSHOT_FAILED] = "Failed",
        [SNAPSHOT_DELETING] = "Deleting",
};
ENUM_TABLE(snapshot_state, snapshot_state_names, SNAPSHOT_STATE_MAX_);

static const struct json_field snapshot_status_fields[] = {
        JSON_ENUM(struct status, state, "state", JSON_REQUIRED, &snapshot_state_table),
        JSON_STR(struct status, reason, "reason", JSON_OMIT_EMPTY | JSON_NONEMPTY),
        JSON_STR(struct status, message, "message", JSON_OMIT_EMPTY | JSON_NONEMPTY),
        JSON_I64(struct status, changed_ms, "lastTransitionAt", JSON_REQUIRED, JSON_MIN(0)),
        JSON_END,
};

#define S struct snapshot

static const struct json_field snapshot_fields[] = {
        JSON_I64(S, schema, "schema", JSON_REQUIRED, JSON_MIN(1)),
        JSON_STR(S, id, "id", JSON_REQUIRED),
        JSON_STR(S, sandbox_id, "sandboxId", JSON_REQUIRED),
        JSON_STR(S, name, "name", JSON_NONEMPTY),
        JSON_STR(S, tenant, "tenant", JSON_REQUIRED),
        JSON_STR(S, node, "node", JSON_REQUIRED),
        JSON_STR(S, driver, "driver", JSON_REQUIRED),
        JSON_I64(S, created_ms, "createdAt", JSON_REQUIRED, JSON_MIN(0)),
        JSON_OBJECT(S, status, struct status, "status", JSON_REQUIRED, snapshot_status_fields),
        JSON_I64(S, version, "version", JSON_REQUIRED, JSON_MIN(1)),
        JSON_END,
};

/* Decoded first: a newer schema may not fit our table. */
static const struct json_field schema_fields[] = {
        JSON_I64(S, schema, "schema", JSON_REQUIRED, JSON_MIN(1)),
        JSON_END,
};

/* --- life --- */

struct snapshot *snapshot_new(void)
{
        struct snapshot *s = xnew(struct snapshot);

        arena_init_small(&s->arena, SNAPSHOT_ARENA_MAX, SNAPSHOT_FIRST);
        s->schema = SNAPSHOT_SCHEMA;
        s->version = 1;
        return s;
}

void snapshot_free(struct snapshot *s)
{
        if (!s)
                return;
        arena_done(&s->arena);
        free(s);
}

void snapshot_freep(struct snapshot **s)
{
        snapshot_free(*s);
        *s = NULL;
}

struct snapshot *snapshot_copy(const struct snapshot *s)
{
        scoped(snapshot_freep) struct snapshot *copy = snapshot_new();

        if (json_copy_struct(snapshot_fields, s, &copy->arena, copy) < 0)
                return NULL;
        return TAKE_PTR(copy);
}

int snapshot_make(const struct snapshot_facts *f, struct snapshot **ret, struct err *e)
{
        const struct snapshot draft = {
                .schema = SNAPSHOT_SCHEMA,
                .id = f->id,
                .sandbox_id = f->sandbox_id,
                .name = f->name,
                .tenant = f->tenant,
                .node = f->node,
                .driver = f->driver,
                .created_ms = f->now_ms,
                .status = { .state = SNAPSHOT_CREATING,
                            .reason = STR(SNAPSHOT_REASON_ACCEPTED),
                            .changed_ms = f->now_ms },
                .version = 1,
        };
        struct snapshot *s;
        int r = snapshot_check(&draft, e);

        if (r < 0)
                return r;
        s = snapshot_copy(&draft);
        if (!s)
                return err_set(e, ERR_TOO_LARGE, "the snapshot does not fit into a record");
        *ret = s;
        return 0;
}

/* --- changes --- */

#define BIT(name) (1u << SNAPSHOT_##name)

static const unsigned ways_out[SNAPSHOT_STATE_MAX_] = {
        [SNAPSHOT_CREATING] = BIT(READY) | BIT(FAILED),
        [SNAPSHOT_READY] = BIT(DELETING) | BIT(FAILED),
        [SNAPSHOT_FAILED] = BIT(DELETING),
        [SNAPSHOT_DELETING] = BIT(READY) | BIT(FAILED),
};

int snapshot_change(struct snapshot *s, const struct snapshot_step *to, struct err *e)
{
        int r;

        if (!(ways_out[s->status.state] & 1u << to->state))
                return err_set(e, ERR_CONFLICT, "the snapshot is %s and cannot become %s",
                               snapshot_state_to_string(s->status.state),
                               snapshot_state_to_string((int) to->state));
        r = status_explain(&s->status, &s->arena, to->reason, to->message, e);
        if (r < 0)
                return r;
        s->status.state = (int) to->state;
        s->status.changed_ms = to->at_ms;
        return 0;
}

bool snapshot_name_is_valid(struct str name)
{
        return text_is_clean(name, NAME_MAX_TEXT);
}

/* --- stored form --- */

int snapshot_check(const struct snapshot *s, struct err *e)
{
        const struct {
                const char *member;
                struct str value;
        } names[] = { { "tenant", s->tenant }, { "node", s->node }, { "driver", s->driver } };
        const char *what = status_check(&s->status, &snapshot_state_table);

        if (!sandbox_id_is_valid(s->id))
                return err_set(e, ERR_INVALID, "id: is not an id");
        if (!sandbox_id_is_valid(s->sandbox_id))
                return err_set(e, ERR_INVALID, "sandboxId: is not an id");
        if (s->name.p && !snapshot_name_is_valid(s->name))
                return err_set(e, ERR_INVALID, "name: is empty, too long or not clean text");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!text_is_clean(names[i].value, NAME_MAX_TEXT))
                        return err_set(e, ERR_INVALID, "%s: is empty, too long or not clean text",
                                       names[i].member);
        if (s->created_ms < 0)
                return err_set(e, ERR_INVALID, "createdAt: is negative");
        if (s->schema != SNAPSHOT_SCHEMA || s->version < 1)
                return err_set(e, ERR_INVALID, "version: is not one, or schema is not ours");
        return what ? err_set(e, ERR_INVALID, "status: %s", what) : 0;
}

void snapshot_encode(struct buf *b, const struct snapshot *s)
{
        json_encode(b, snapshot_fields, s);
}

int snapshot_decode(struct str text, struct snapshot **ret, struct err *e)
{
        scoped(snapshot_freep) struct snapshot *s = snapshot_new();
        struct json_error je;
        json_t *doc;
        int r;

        if (text.n > SNAPSHOT_TEXT_MAX)
                return err_set(e, ERR_TOO_LARGE, "snapshot record: more than %zu bytes",
                               SNAPSHOT_TEXT_MAX);
        if (json_parse(text, 0, &doc, &je) < 0)
                return err_set(e, ERR_INVALID, "snapshot record: %s", je.message);
        r = json_decode_value(doc, schema_fields, 0, &s->arena, s, &je);
        if (r == 0 && s->schema <= SNAPSHOT_SCHEMA)
                r = json_decode_value(doc, snapshot_fields, JSON_REFUSE_UNKNOWN, &s->arena, s, &je);
        json_decref(doc);
        if (r < 0)
                return err_set(e, r == -ENOMEM ? ERR_TOO_LARGE : ERR_INVALID, "snapshot record: %s",
                               je.message);
        if (s->schema > SNAPSHOT_SCHEMA)
                return err_set(e, ERR_UNSUPPORTED,
                               "snapshot record: schema %lld was written by a newer hutchd; this "
                               "one knows %d",
                               (long long) s->schema, SNAPSHOT_SCHEMA);
        if (snapshot_check(s, e) < 0)
                return err_wrap(e, "snapshot record of %s", QUOTED(s->id));
        *ret = TAKE_PTR(s);
        return 0;
}
