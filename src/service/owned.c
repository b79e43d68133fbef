/* SPDX-License-Identifier: Apache-2.0 */

/* A sandbox as its owner sees it. Stricter than service_find, which is about tenants: of one tenant's
 * sandboxes each belongs to one user. */

#include "base/base.h"
#include "service/service_impl.h"

static bool is_owner(const struct sandbox *record, const struct owned *which)
{
        const struct owner *o = &record->owner;

        return str_eq(o->organization_id, which->caller->tenant)
               && str_eq(o->user_id, which->caller->principal)
               && (!which->project.p || str_eq(o->project_id, which->project));
}

int service_find_owned(const struct service *s, const struct owned *which,
                       const struct sandbox **ret, struct err *e)
{
        const struct sandbox *record = service_find(s, which->caller, which->id);

        /* A tombstone is there for who looks at lists; its owner has nothing any more. */
        if (!record || state_is_final((enum state) record->status.state))
                return service__not_found(e);
        if (!is_owner(record, which))
                return err_set(e, ERR_FORBIDDEN, "the sandbox belongs to another owner");
        *ret = record;
        return 0;
}
