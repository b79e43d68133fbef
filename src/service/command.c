/* SPDX-License-Identifier: Apache-2.0 */

/* Commands on an existing sandbox. */

#include "service/service_impl.h"

#include "base/base.h"
#include "base/json.h"

#define PATCH_FIRST 256 /* bytes: a patch is a label or two */

/* A delete that is in progress or waits: a second one waits for the same end. */
static struct sandbox_op *find_delete(const struct sandbox_ctl *ctl)
{
        if (ctl->current && ctl->current->args.command == COMMAND_DELETE)
                return ctl->current;
        list_for_each (n, &ctl->waiting) {
                struct sandbox_op *o = container_of(n, struct sandbox_op, lock_node);

                if (o->args.command == COMMAND_DELETE)
                        return o;
        }
        return NULL;
}

static const struct json_field patch_fields[] = {
        JSON_MAP(struct service_command, patch, "patch", 0),
        JSON_END,
};

static void command_run(struct service *s, struct service_command *c, enum command command)
{
        struct service_command patch = { 0 };
        struct err *e = &c->req.err;
        const struct sandbox *record;
        struct sandbox_ctl *ctl;
        struct sandbox_op *o;
        int r;

        req__begin(s, &c->req, sandbox_op__cancel_wait);
        r = service__ready(s, e);
        record = r == 0 ? service_find(s, c->caller, c->id) : NULL;
        if (!record)
                return req__finish(&c->req, NULL, r < 0 ? r : service__not_found(e), e);
        ctl = sandbox_ctl__obtain(s, record->id);
        o = command == COMMAND_DELETE ? find_delete(ctl) : NULL;
        if (o)
                return sandbox_op__wait(o, &c->req);
        if (ctl->n_ops >= SANDBOX_OPS_MAX) {
                r = err_set(e, ERR_UNAVAILABLE, "too many commands wait for this sandbox");
                return req__finish(&c->req, NULL, r, e);
        }
        o = sandbox_op__new(s, ctl, command);
        o->args.expires = c->expires;
        sandbox_op__wait(o, &c->req);
        if (command == COMMAND_PATCH) {
                arena_init_small(&o->memory, ARENA_MAX_REQUEST, PATCH_FIRST);
                if (json_copy_struct(patch_fields, c, &o->memory, &patch) < 0) {
                        o->result = err_set(&o->err, ERR_TOO_LARGE,
                                            "the patch does not fit into memory");
                        return sandbox_op__finish(o);
                }
                o->patch = patch.patch;
        }
        return sandbox_op__start(o);
}

void service_delete(struct service *s, struct service_command *c)
{
        command_run(s, c, COMMAND_DELETE);
}

void service_pause(struct service *s, struct service_command *c)
{
        command_run(s, c, COMMAND_PAUSE);
}

void service_resume(struct service *s, struct service_command *c)
{
        command_run(s, c, COMMAND_RESUME);
}

void service_renew(struct service *s, struct service_command *c)
{
        command_run(s, c, COMMAND_RENEW);
}

void service_patch_metadata(struct service *s, struct service_command *c)
{
        command_run(s, c, COMMAND_PATCH);
}
