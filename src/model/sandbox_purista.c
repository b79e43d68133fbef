/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "model/limits.h"
#include "model/sandbox.h"
#include "model/text.h"

#define S struct sandbox

/* As PURISTA checks it. Generations differ by what is optional. */
static const struct json_field fields[] = {
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

/* What has a schema is, or was meant to be, a record of ours: not to be taken for less than that. */
static int decode(struct str text, struct sandbox *s, struct json_error *je)
{
        json_t *doc;
        int r = json_parse(text, 0, &doc, je);

        if (r < 0)
                return r;
        if (json_object_get(doc, "schema")) {
                (void) snprintf(je->message, sizeof(je->message), "schema: is a record of Hutch");
                r = -EINVAL;
        } else {
                r = json_decode_value(doc, fields, 0, &s->arena, s, je);
        }
        json_decref(doc);
        return r;
}

int sandbox_decode_purista(struct str text, struct sandbox **ret, struct err *e)
{
        scoped(sandbox_freep) struct sandbox *s = sandbox_new();
        struct json_error je;

        if (text.n > RECORD_TEXT_MAX || decode(text, s, &je) < 0)
                return err_set(e, ERR_INVALID, "entry of PURISTA: %s",
                               text.n > RECORD_TEXT_MAX ? "is too long" : je.message);
        if (!sandbox_id_is_valid(s->id))
                return err_set(e, ERR_INVALID, "entry of PURISTA: sandboxId: is not an id");
        if (owner_check(&s->owner, e) < 0)
                return err_wrap(e, "entry of PURISTA");
        s->schema = SANDBOX_SCHEMA_PURISTA;
        s->tenant = s->owner.organization_id;
        s->owner_bound = true; /* it has no others */
        s->status.state = STATE_RUNNING;
        *ret = TAKE_PTR(s);
        return 0;
}
