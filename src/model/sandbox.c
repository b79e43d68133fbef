/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox.h"

#include "base/base.h"
#include "model/extensions.h"
#include "model/labels.h"
#include "model/limits.h"
#include "model/text.h"

/* --- field tables --- */

const struct json_field platform_fields[] = {
        JSON_STR(struct platform, os, "os", JSON_REQUIRED),
        JSON_STR(struct platform, arch, "arch", JSON_REQUIRED),
        JSON_END,
};

#define S struct sandbox

static const struct json_field sandbox_fields[] = {
        JSON_I64(S, schema, "schema", JSON_REQUIRED, JSON_MIN(1)),
        JSON_STR(S, id, "sandboxId", JSON_REQUIRED),
        JSON_STR(S, owner.organization_id, "organizationId", JSON_REQUIRED),
        JSON_STR(S, owner.project_id, "projectId", JSON_REQUIRED),
        JSON_STR(S, owner.user_id, "userId", JSON_REQUIRED),
        JSON_STR(S, container_name, "containerName", JSON_REQUIRED),
        JSON_I64(S, created_ms, "createdAt", JSON_REQUIRED, JSON_MIN(0)),
        JSON_BOOL(S, git_configured, "gitConfigured", JSON_OMIT_EMPTY),
        JSON_OBJECT(S, owner.scope, struct scope, "scope", JSON_REQUIRED, scope_fields),
        JSON_BOOL(S, owner_bound, "ownerBound", JSON_OMIT_EMPTY),
        JSON_STR(S, tenant, "tenant", JSON_REQUIRED),
        JSON_STR(S, node, "node", JSON_REQUIRED),
        JSON_STR(S, driver, "driver", JSON_REQUIRED),
        JSON_STR(S, image, "image", 0),
        JSON_STR(S, snapshot_id, "snapshotId", 0),
        JSON_OPT(S, platform, struct platform, "platform", 0, platform_fields),
        JSON_STRS(S, entrypoint, "entrypoint", JSON_REQUIRED, .items_max = ENTRYPOINT_ITEMS_MAX),
        JSON_STRS(S, env_names, "envNames", JSON_OMIT_EMPTY, .items_max = ENV_ITEMS_MAX),
        JSON_MAP(S, limits.texts, "resourceLimits", JSON_OMIT_EMPTY, .items_max = RESOURCES_MAX),
        JSON_OPT(S, network_policy, struct network_policy, "networkPolicy", 0,
                 network_policy_fields),
        JSON_LIST(S, volumes, struct volume, "volumes", JSON_OMIT_EMPTY, volume_record_fields,
                  .items_max = VOLUMES_MAX),
        JSON_MAP(S, metadata, "metadata", JSON_OMIT_EMPTY, .items_max = LABELS_MAX),
        JSON_MAP(S, extensions, "extensions", JSON_OMIT_EMPTY, .items_max = EXTENSIONS_MAX),
        JSON_BOOL(S, secure_access, "secureAccess", JSON_OMIT_EMPTY),
        JSON_OPT(S, expiry, struct expiry, "expiry", 0, expiry_fields),
        JSON_OBJECT(S, status, struct status, "status", JSON_REQUIRED, status_fields),
        JSON_RAW(S, handle, "handle", 0),
        JSON_I64(S, version, "version", JSON_REQUIRED, JSON_MIN(1)),
        JSON_END,
};

/* Decoded first: a newer schema may not fit our table. */
static const struct json_field schema_fields[] = {
        JSON_I64(S, schema, "schema", JSON_REQUIRED, JSON_MIN(1)),
        JSON_END,
};

/* --- life --- */

struct sandbox *sandbox_new(void)
{
        struct sandbox *s = xnew(struct sandbox);

        arena_init_small(&s->arena, RECORD_ARENA_MAX, RECORD_ARENA_FIRST);
        s->schema = SANDBOX_SCHEMA;
        s->version = 1;
        return s;
}

void sandbox_free(struct sandbox *s)
{
        if (!s)
                return;
        arena_done(&s->arena);
        free(s);
}

void sandbox_freep(struct sandbox **s)
{
        sandbox_free(*s);
        *s = NULL;
}

struct sandbox *sandbox_copy(const struct sandbox *s)
{
        scoped(sandbox_freep) struct sandbox *copy = sandbox_new();

        if (json_copy_struct(sandbox_fields, s, &copy->arena, copy) < 0)
                return NULL;
        copy->limits.cpu_milli = s->limits.cpu_milli;
        copy->limits.memory_bytes = s->limits.memory_bytes;
        copy->limits.pids = s->limits.pids;
        copy->limits.gpus = s->limits.gpus;
        return TAKE_PTR(copy);
}

/* --- names --- */

bool sandbox_id_is_valid(struct str id)
{
        return id.n <= SANDBOX_ID_MAX && text_is_dns_label(id);
}

int sandbox_set_id(struct sandbox *s, struct str id, struct err *e)
{
        char *name;

        ASSERT(sandbox_id_is_valid(id));
        name = arena_printf(&s->arena, CONTAINER_PREFIX "%.*s", STR_ARG(id));
        if (!name)
                return err_set(e, ERR_TOO_LARGE, "the record has no room");
        s->container_name = str_from(name);
        s->id = str_skip(s->container_name, strlen(CONTAINER_PREFIX));
        return 0;
}

/* --- changes --- */

int sandbox_change(struct sandbox *s, const struct status_step *to, struct err *e)
{
        return status_change(&s->status, &s->arena, to, e);
}

int sandbox_set_expiry(struct sandbox *s, const struct expiry *x, struct err *e)
{
        struct expiry *copy = NULL;

        if (x) {
                copy = arena_new(&s->arena, struct expiry);
                if (!copy || json_copy_struct(expiry_fields, x, &s->arena, copy) < 0)
                        return err_set(e, ERR_TOO_LARGE, "the record has no room");
        }
        s->expiry = copy;
        return 0;
}

int sandbox_patch_metadata(struct sandbox *s, const struct json_map *patch, struct err *e)
{
        return labels_patch(&s->metadata, patch, &s->arena, &s->metadata, e);
}

int sandbox_set_handle(struct sandbox *s, struct str json, struct err *e)
{
        scoped(buf_done) struct buf b;
        struct json_error je;
        struct str copy;
        json_t *doc;
        bool object;

        buf_init(&b, HANDLE_MAX);
        if (!json.p) {
                s->handle = STR_NULL;
                return 0;
        }
        if (json_parse(json, 0, &doc, &je) < 0)
                return err_set(e, ERR_INVALID, "the driver's handle: %s", je.message);
        /* Re-encoded, so that reading it back changes nothing. */
        object = json_is_object(doc);
        json_encode_value(&b, doc);
        json_decref(doc);
        if (!object || buf_failed(&b))
                return err_set(e, ERR_INVALID,
                               "the driver's handle: must be an object of at most %zu bytes",
                               HANDLE_MAX);
        copy = arena_dup_str(&s->arena, buf_str(&b));
        if (!copy.p)
                return err_set(e, ERR_TOO_LARGE, "the record has no room");
        s->handle = copy;
        return 0;
}

/*
 * --- stored form ---
 *
 * Decoding has three steps, each stricter than the last: the schema number, the field table (types, unknown keys), and the
 * rules under which each member was accepted when it was written. The rules are the model's own functions, not a second
 * version of them.
 */

static int check_names(const struct sandbox *s, struct err *e)
{
        const struct {
                const char *member;
                struct str value;
        } names[] = { { "tenant", s->tenant }, { "node", s->node }, { "driver", s->driver } };
        struct str name = s->container_name;

        if (!sandbox_id_is_valid(s->id))
                return err_set(e, ERR_INVALID, "sandboxId: is not an id");
        if (!str_starts_with(name, STR(CONTAINER_PREFIX))
            || !str_eq(str_skip(name, strlen(CONTAINER_PREFIX)), s->id))
                return err_set(e, ERR_INVALID, "containerName: does not belong to the id");
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!text_is_clean(names[i].value, NAME_MAX_TEXT))
                        return err_set(e, ERR_INVALID, "%s: is empty, too long or not clean text",
                                       names[i].member);
        return owner_check(&s->owner, e);
}

static int check_source_and_process(const struct sandbox *s, struct err *e)
{
        if (!s->image.p == !s->snapshot_id.p)
                return err_set(e, ERR_INVALID,
                               "image: exactly one of image and snapshotId must be there");
        if (s->image.p && !text_is_clean(s->image, IMAGE_URI_MAX))
                return err_set(e, ERR_INVALID, "image: is empty, too long or not clean text");
        if (s->snapshot_id.p && !text_is_clean(s->snapshot_id, NAME_MAX_TEXT))
                return err_set(e, ERR_INVALID, "snapshotId: is empty, too long or not clean text");
        if (s->platform
            && (!text_is_label(s->platform->os, REASON_MAX)
                || !text_is_label(s->platform->arch, REASON_MAX)))
                return err_set(e, ERR_INVALID, "platform: is not a platform");
        if (s->entrypoint.n == 0 || s->entrypoint.n > ENTRYPOINT_ITEMS_MAX
            || s->entrypoint.items[0].n == 0)
                return err_set(e, ERR_INVALID, "entrypoint: is empty or too long");
        for (size_t i = 0; i < s->entrypoint.n; i++)
                if (!text_is_argument(s->entrypoint.items[i], ARGUMENT_MAX))
                        return err_set(e, ERR_INVALID,
                                       "entrypoint: has an argument that is too long or not text");
        if (s->env_names.n > ENV_ITEMS_MAX)
                return err_set(e, ERR_INVALID, "envNames: are too many");
        /* A '=' would start a value, and values are secrets. */
        for (size_t i = 0; i < s->env_names.n; i++)
                if (!text_is_clean(s->env_names.items[i], ENV_NAME_MAX)
                    || str_find(s->env_names.items[i], '=') >= 0)
                        return err_set(e, ERR_INVALID, "envNames: has what is not a name");
        return 0;
}

static int check_limits(const struct resources *limits, struct err *e)
{
        bool canonical = true;
        struct resources again;
        struct arena a;
        int r;

        arena_init(&a, 64 * KiB);
        r = resources_parse(&limits->texts, &a, &again, e);
        for (size_t i = 0; r == 0 && i < again.texts.n; i++)
                canonical &= str_eq(again.texts.items[i].value, limits->texts.items[i].value);
        if (r == 0 && !canonical)
                r = err_set(e, ERR_INVALID, "resourceLimits: are not in their canonical form");
        else if (r == 0
                 && (again.cpu_milli != limits->cpu_milli || again.gpus != limits->gpus
                     || again.memory_bytes != limits->memory_bytes || again.pids != limits->pids))
                r = err_set(e, ERR_INVALID, "resourceLimits: differ from their texts");
        arena_done(&a);
        return r;
}

static int check_status_and_times(const struct sandbox *s, struct err *e)
{
        const char *what = status_check(&s->status, &state_table);

        if (what)
                return err_set(e, ERR_INVALID, "status: %s", what);
        what = s->expiry ? expiry_check(s->expiry) : NULL;
        if (what)
                return err_set(e, ERR_INVALID, "expiry: %s", what);
        if (s->created_ms < 0)
                return err_set(e, ERR_INVALID, "createdAt: is negative");
        if (s->schema != SANDBOX_SCHEMA || s->version < 1)
                return err_set(e, ERR_INVALID, "version: is not one, or schema is not ours");
        if (s->handle.p && (s->handle.n > HANDLE_MAX || !str_starts_with(s->handle, STR("{"))))
                return err_set(e, ERR_INVALID, "handle: must be an object that is not too large");
        return 0;
}

int sandbox_check(const struct sandbox *s, struct err *e)
{
        struct volume_problem volume;
        int r = check_names(s, e);

        if (r == 0)
                r = check_source_and_process(s, e);
        if (r == 0)
                r = check_limits(&s->limits, e);
        if (r == 0 && s->network_policy)
                r = network_policy_check(s->network_policy, e);
        if (r == 0 && s->volumes.n > VOLUMES_MAX)
                r = err_set(e, ERR_INVALID, "volumes: are too many");
        if (r == 0 && volumes_check(&s->volumes, false, &volume) < 0)
                r = err_set(e, ERR_INVALID, "%s", volume.message);
        if (r == 0)
                r = labels_check(&s->metadata, e);
        if (r == 0)
                r = extensions_check(&s->extensions, e);
        return r < 0 ? r : check_status_and_times(s, e);
}

/* --- text --- */

void sandbox_encode(struct buf *b, const struct sandbox *s)
{
        json_encode(b, sandbox_fields, s);
}

int sandbox_decode(struct str text, struct sandbox **ret, struct err *e)
{
        scoped(sandbox_freep) struct sandbox *s = sandbox_new();
        struct resources limits;
        struct json_error je;
        json_t *doc;
        int r;

        if (text.n > RECORD_TEXT_MAX)
                return err_set(e, ERR_TOO_LARGE, "sandbox record: more than %zu bytes",
                               RECORD_TEXT_MAX);
        if (json_parse(text, 0, &doc, &je) < 0)
                return err_set(e, ERR_INVALID, "sandbox record: %s", je.message);
        r = json_decode_value(doc, schema_fields, 0, &s->arena, s, &je);
        if (r == 0 && s->schema <= SANDBOX_SCHEMA)
                r = json_decode_value(doc, sandbox_fields, JSON_REFUSE_UNKNOWN, &s->arena, s, &je);
        json_decref(doc);
        if (r < 0)
                return err_set(e, r == -ENOMEM ? ERR_TOO_LARGE : ERR_INVALID, "sandbox record: %s",
                               je.message);
        if (s->schema > SANDBOX_SCHEMA)
                return err_set(e, ERR_UNSUPPORTED,
                               "sandbox record: schema %lld was written by a newer hutchd; this "
                               "one knows %d",
                               (long long) s->schema, SANDBOX_SCHEMA);
        r = resources_parse(&s->limits.texts, &s->arena, &limits, e);
        if (r == 0) {
                /* As read: the check sees whether they are canonical. */
                limits.texts = s->limits.texts;
                s->limits = limits;
                r = sandbox_check(s, e);
        }
        if (r < 0)
                return err_wrap(e, "sandbox record of %s", QUOTED(s->id));
        *ret = TAKE_PTR(s);
        return 0;
}

/* --- entries of PURISTA's own registry --- */

/* PURISTA's own schema. Its generations differ in what is optional. */
static const struct json_field purista_fields[] = {
        JSON_STR(S, id, "sandboxId", JSON_REQUIRED),
        JSON_STR(S, owner.organization_id, "organizationId", JSON_REQUIRED),
        JSON_STR(S, owner.project_id, "projectId", JSON_REQUIRED),
        JSON_STR(S, owner.user_id, "userId", JSON_REQUIRED),
        JSON_STR(S, container_name, "containerName", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_I64(S, created_ms, "createdAt", JSON_REQUIRED, JSON_MIN(0)),
        JSON_BOOL(S, git_configured, "gitConfigured", JSON_NULL_OK),
        JSON_OBJECT(S, owner.scope, struct scope, "scope", JSON_NULL_OK, scope_fields),
        JSON_END,
};

int sandbox_decode_purista(struct str text, struct sandbox **ret, struct err *e)
{
        scoped(sandbox_freep) struct sandbox *s = sandbox_new();
        struct json_error je;
        json_t *doc;
        bool ours;
        int r;

        if (text.n > RECORD_TEXT_MAX)
                return err_set(e, ERR_INVALID, "entry of PURISTA: is too long");
        if (json_parse(text, 0, &doc, &je) < 0)
                return err_set(e, ERR_INVALID, "entry of PURISTA: %s", je.message);
        /* An entry with a schema is a record of ours, perhaps a damaged one: never taken for PURISTA's. */
        ours = json_object_get(doc, "schema");
        r = ours ? 0 : json_decode_value(doc, purista_fields, 0, &s->arena, s, &je);
        json_decref(doc);
        if (ours || r < 0)
                return err_set(e, ERR_INVALID, "entry of PURISTA: %s",
                               ours ? "schema: is a record of Hutch" : je.message);
        if (!sandbox_id_is_valid(s->id))
                return err_set(e, ERR_INVALID, "entry of PURISTA: sandboxId: is not an id");
        if (owner_check(&s->owner, e) < 0)
                return err_wrap(e, "entry of PURISTA");
        s->schema = SANDBOX_SCHEMA_PURISTA;
        s->tenant = s->owner.organization_id;
        s->owner_bound = true; /* PURISTA has no other kind */
        s->status.state = STATE_RUNNING;
        *ret = TAKE_PTR(s);
        return 0;
}
