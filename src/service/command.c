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

static int copy_patch(struct sandbox_op *o, const struct service_command *from, struct err *e)
{
        struct service_command copy = { 0 };

        arena_init_small(&o->memory, ARENA_MAX_REQUEST, PATCH_FIRST);
        if (json_copy_struct(patch_fields, from, &o->memory, &copy) < 0)
                return err_set(e, ERR_TOO_LARGE, "the patch does not fit into memory");
        o->patch = copy.patch;
        return 0;
}

static int command_begin(struct service *s, struct service_command *c, enum command command)
{
        struct err *e = &c->req.err;
        int r = service__ready(s, e);
        const struct sandbox *record = r == 0 ? service_find(s, c->caller, c->id) : NULL;
        struct sandbox_ctl *ctl;
        struct sandbox_op *o;

        if (r < 0)
                return r;
        if (!record)
                return service__not_found(e);
        ctl = sandbox_ctl__obtain(s, record->id);
        o = command == COMMAND_DELETE ? find_delete(ctl) : NULL;
        if (o) {
                sandbox_op__wait(o, &c->req);
                return 0;
        }
        if (ctl->n_ops >= SANDBOX_OPS_MAX)
                return err_set(e, ERR_UNAVAILABLE, "too many commands wait for this sandbox");
        o = sandbox_op__new(s, ctl, command);
        o->args.expires = c->expires;
        sandbox_op__wait(o, &c->req);
        r = command == COMMAND_PATCH ? copy_patch(o, c, e) : 0;
        if (r < 0)
                sandbox_op__drop(o, r, e);
        else
                sandbox_op__start(o);
        return 0;
}

static void command_run(struct service *s, struct service_command *c, enum command command)
{
        int r;

        req__begin(s, &c->req, sandbox_op__cancel_wait);
        r = command_begin(s, c, command);
        if (r < 0)
                req__finish(&c->req, NULL, r, &c->req.err);
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
