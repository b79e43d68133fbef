/* SPDX-License-Identifier: Apache-2.0 */
#include "model/owner.h"

#include "base/base.h"
#include "model/limits.h"
#include "model/text.h"

static const char *const scope_kind_names[] = {
        [SCOPE_SHARED_PROJECT_USER] = "shared-project-user", [SCOPE_AGENT_RUN] = "agent-run",
        [SCOPE_AGENT_INSTANCE] = "agent-instance",           [SCOPE_CONVERSATION] = "conversation",
        [SCOPE_RUNTIME_INSTANCE] = "runtime-instance",       [SCOPE_CUSTOM] = "custom",
};
ENUM_TABLE(scope_kind, scope_kind_names, SCOPE_KIND_MAX_);

const struct json_field scope_fields[] = {
        JSON_ENUM(struct scope, kind, "kind", JSON_REQUIRED, &scope_kind_table),
        JSON_STR(struct scope, key, "key", JSON_NULL_OK | JSON_NONEMPTY),
        JSON_END,
};

/* --- checks --- */

int owner_check(const struct owner *o, struct err *e)
{
        const struct {
                const char *name;
                struct str value;
                bool required;
        } parts[] = {
                { "organizationId", o->organization_id, true },
                { "projectId", o->project_id, true },
                { "userId", o->user_id, true },
                { "scope.key", o->scope.key, o->scope.kind != SCOPE_SHARED_PROJECT_USER },
        };

        if (!scope_kind_to_string(o->scope.kind))
                return err_set(e, ERR_INVALID, "scope.kind: is unknown");
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                struct str value = parts[i].value;

                if (!parts[i].required && value.p)
                        return err_set(e, ERR_INVALID, "%s: not allowed for this scope",
                                       parts[i].name);
                if (!parts[i].required)
                        continue;
                if (value.n == 0)
                        return err_set(e, ERR_INVALID, "%s: must not be empty", parts[i].name);
                if (!text_is_clean(value, OWNER_PART_MAX))
                        return err_set(e, ERR_INVALID,
                                       "%s: must be text of at most %d bytes without control "
                                       "characters",
                                       parts[i].name, OWNER_PART_MAX);
        }
        return 0;
}

bool owner_eq(const struct owner *a, const struct owner *b)
{
        return str_eq(a->organization_id, b->organization_id)
               && str_eq(a->project_id, b->project_id) && str_eq(a->user_id, b->user_id)
               && a->scope.kind == b->scope.kind && str_eq(a->scope.key, b->scope.key);
}

/* --- keys --- */

static void add_escaped(struct buf *b, struct str part)
{
        for (size_t i = 0; i < part.n; i++) {
                if (part.p[i] == ':')
                        buf_add_str(b, STR("%3A"));
                else if (part.p[i] == '%')
                        buf_add_str(b, STR("%25"));
                else
                        buf_add_char(b, part.p[i]);
        }
}

void owner_add_key(struct buf *b, const struct owner *o)
{
        const char *kind = scope_kind_to_string(o->scope.kind);

        ASSERT(kind);
        add_escaped(b, o->organization_id);
        buf_add_char(b, ':');
        add_escaped(b, o->project_id);
        buf_add_char(b, ':');
        add_escaped(b, o->user_id);
        buf_addf(b, ":%s", kind);
        if (o->scope.kind == SCOPE_SHARED_PROJECT_USER)
                return;
        buf_add_char(b, ':');
        add_escaped(b, o->scope.key);
}
