/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sandbox.h"

#include "base/base.h"
#include "model/labels.h"
#include "model/limits.h"
#include "model/sandbox_record.h"
#include "model/text.h"

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

        if (json_copy_struct(sandbox__fields, s, &copy->arena, copy) < 0)
                return NULL;
        copy->limits.cpu_milli = s->limits.cpu_milli;
        copy->limits.memory_bytes = s->limits.memory_bytes;
        copy->limits.gpus = s->limits.gpus;
        return TAKE_PTR(copy);
}

/* --- names --- */

bool sandbox_id_is_valid(struct str id)
{
        return id.n <= SANDBOX_ID_MAX && text_is_dns_label(id);
}

static int no_room(struct err *e)
{
        return err_set(e, ERR_TOO_LARGE, "the record has no room");
}

int sandbox_set_id(struct sandbox *s, struct str id, struct err *e)
{
        char *name;

        ASSERT(sandbox_id_is_valid(id));
        name = arena_printf(&s->arena, CONTAINER_PREFIX "%.*s", STR_ARG(id));
        if (!name)
                return no_room(e);
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
                        return no_room(e);
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
        /* Written again, so that reading it back changes nothing. */
        object = json_is_object(doc);
        json_encode_value(&b, doc);
        json_decref(doc);
        if (!object || buf_failed(&b))
                return err_set(e, ERR_INVALID,
                               "the driver's handle: must be an object of at most %zu bytes",
                               HANDLE_MAX);
        copy = arena_dup_str(&s->arena, buf_str(&b));
        if (!copy.p)
                return no_room(e);
        s->handle = copy;
        return 0;
}
