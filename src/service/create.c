/* SPDX-License-Identifier: Apache-2.0 */

/* Create: everything that can be refused is refused before the first write. */

#include "service/service_impl.h"

#include <stdio.h>

#include "base/base.h"
#include "base/id.h"
#include "model/extensions.h"
#include "model/text.h"
#include "service/replay.h"

/* --- is the wish in order? --- */

static int tell_problem(struct service_create *c, const char *message)
{
        problems_add(&c->problems, c->arena, "value_error", "", message);
        c->problems.code = CODE_INVALID_PARAMETER;
        return err_set(&c->req.err, ERR_INVALID, "%s", message);
}

/* Names of ours are ours: a client that could write them could pose as a replayed create. */
static int check_names(struct service_create *c)
{
        const struct json_map *x = &c->request->extensions;
        char message[256];

        for (size_t i = 0; i < x->n; i++) {
                struct str key = x->items[i].key;

                if (!str_starts_with(key, EXTENSION_OURS) || str_eq(key, EXTENSION_DRIVER)
                    || str_eq(key, EXTENSION_NETWORK))
                        continue;
                (void) snprintf(message, sizeof(message), "extensions: %s is not for clients",
                                QUOTED(key));
                return tell_problem(c, message);
        }
        return 0;
}

static int check(struct service *s, struct service_create *c)
{
        if (create_check(c->request, &s->config.policy, c->arena, &c->problems) < 0)
                return err_set(&c->req.err, ERR_INVALID, "%.*s",
                               STR_ARG(problems_message(&c->problems)));
        return check_names(c);
}

static bool can_restore(const struct service *s)
{
        for (size_t i = 0; i < s->n_drivers; i++)
                if (driver_can(s->drivers[i].driver, DRIVER_SNAPSHOT))
                        return true;
        return false;
}

/* What is made of a snapshot is made by the driver that keeps it. */
static int choose_by_snapshot(struct service *s, struct service_create *c, struct driver **ret)
{
        const struct snapshot *from = service_find_snapshot(s, c->caller, c->request->snapshot_id);
        struct str name = extensions_get(&c->request->extensions, EXTENSION_DRIVER);
        struct err *e = &c->req.err;

        if (!from && !can_restore(s))
                return err_set(e, ERR_UNSUPPORTED,
                               "snapshotId: no driver of this server can take snapshots");
        c->about_snapshot = true;
        /* An admin sees all, and makes sandboxes of his own tenant only. */
        if (!from || !str_eq(from->tenant, c->caller->tenant))
                return err_set(e, ERR_NOT_FOUND, "there is no such snapshot");
        if (from->status.state != SNAPSHOT_READY)
                return err_set(e, ERR_CONFLICT, "the snapshot is %s, not Ready",
                               snapshot_state_to_string(from->status.state));
        if (name.p && !str_eq(name, from->driver))
                return err_set(e, ERR_INVALID,
                               "extensions.hutch.driver: the snapshot is one of the driver '%.*s'",
                               STR_ARG(from->driver));
        *ret = service__driver(s, from->driver);
        if (!*ret)
                return err_set(e, ERR_UNAVAILABLE,
                               "the driver of this snapshot is not enabled on this server");
        c->about_snapshot = false;
        return 0;
}

static int choose_driver(struct service *s, struct service_create *c, struct driver **ret)
{
        struct str name = extensions_get(&c->request->extensions, EXTENSION_DRIVER);
        char message[256];

        if (s->n_drivers == 0)
                return err_set(&c->req.err, ERR_UNAVAILABLE,
                               "this server has no driver, so it can make no sandbox; its operator "
                               "chooses one with hutchd --driver");
        if (c->request->snapshot_id.p)
                return choose_by_snapshot(s, c, ret);
        *ret = name.p ? service__driver(s, name) : s->drivers[0].driver;
        if (*ret)
                return 0;
        (void) snprintf(message, sizeof(message),
                        "extensions.hutch.driver: there is no driver %s here", QUOTED(name));
        return tell_problem(c, message);
}

#if defined(__x86_64__)
#define OUR_ARCH STR("amd64")
#elif defined(__aarch64__)
#define OUR_ARCH STR("arm64")
#else
#error "which platform is this?"
#endif

static int check_caps(const struct create_request *w, const struct driver *d, struct err *e)
{
        const struct {
                bool wanted;
                unsigned cap;
                const char *what;
        } requested[] = {
                { w->volumes.n > 0, DRIVER_VOLUMES, "volumes" },
                { w->network_policy != NULL, DRIVER_NETWORK_POLICY, "networkPolicy" },
                { w->snapshot_id.p != NULL, DRIVER_SNAPSHOT, "snapshotId" },
                { extensions_get(&w->extensions, EXTENSION_NETWORK).p != NULL, DRIVER_NETWORKS,
                  "extensions.hutch.network" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(requested); i++)
                if (requested[i].wanted && !driver_can(d, requested[i].cap))
                        return err_set(e, ERR_UNSUPPORTED, "%s: the driver '%s' cannot do that",
                                       requested[i].what, driver_name(d));
        if (!w->platform)
                return 0;
        if (!str_eq(w->platform->os, STR("linux")))
                return err_set(e, ERR_UNSUPPORTED, "platform.os: sandboxes here are linux");
        if (!str_eq(w->platform->arch, OUR_ARCH))
                return err_set(e, ERR_UNSUPPORTED, "platform.arch: sandboxes here are %s",
                               OUR_ARCH.p);
        return 0;
}

/* --- the same once more? --- */

static bool is_same(const struct sandbox_ctl *p, const struct sandbox *record,
                    struct str fingerprint)
{
        const struct sandbox_op *j = p->current;

        if (record)
                return replay_matches(record, fingerprint);
        return j && j->creation && str_eq_secret(str_from(j->creation->fingerprint), fingerprint);
}

/* There is a sandbox of this key, or one on its way. */
static int replay(struct service_create *c, struct sandbox_ctl *p, struct str fingerprint)
{
        const struct sandbox *record = sandbox_ctl__record(p);
        struct sandbox_op *j = p->current;

        if (!record && !(j && j->creation))
                return err_set(&c->req.err, ERR_UNAVAILABLE,
                               "the sandbox of this idempotency key is just going");
        if (!is_same(p, record, fingerprint))
                return err_set(&c->req.err, ERR_CONFLICT,
                               "the idempotency key was used for another request");
        c->replayed = true;
        if (j && j->creation && !j->creation->answered)
                sandbox_op__wait(j, &c->req);
        else
                req__finish(&c->req, p, 0, NULL);
        return 0;
}

/* --- a new one --- */

struct draft {
        struct driver *driver;
        char id[ID_UUID_LEN + 1];
        char fingerprint[FINGERPRINT_LEN + 1]; /* "" without a key */
        struct sandbox *record;
};

static struct owner owner_of(const struct service_create *c)
{
        if (c->owner)
                return *c->owner;
        return (struct owner){ .organization_id = c->caller->tenant,
                               .project_id = STR("default"),
                               .user_id = c->caller->principal,
                               .scope = { .kind = SCOPE_SHARED_PROJECT_USER } };
}

/* The request's own list stays as it is: this one has the fingerprint, too. */
static int add_fingerprint(struct service_create *c, const struct draft *d, struct json_map *ret)
{
        const struct json_map *from = &c->request->extensions;
        struct json_pair *items = arena_alloc_array(c->arena, from->n + 1, sizeof(*items));

        if (!items)
                return err_set(&c->req.err, ERR_TOO_LARGE, "the request does not fit into memory");
        if (from->n > 0)
                memcpy(items, from->items, from->n * sizeof(*items));
        items[from->n] = (struct json_pair){ EXTENSION_IDEMPOTENCY, str_from(d->fingerprint) };
        *ret = (struct json_map){ items, from->n + 1 };
        return 0;
}

static int make_record(struct service *s, struct service_create *c, struct draft *d)
{
        const struct create_facts facts = {
                .id = str_from(d->id),
                .node = s->config.node,
                .tenant = c->caller->tenant,
                .driver = str_from(driver_name(d->driver)),
                .owner = owner_of(c),
                .owner_bound = c->owner_bound,
                .git_configured = c->git_configured,
                .now = service__now(s),
        };
        struct create_request request = *c->request;
        int r = 0;

        if (d->fingerprint[0])
                r = add_fingerprint(c, d, &request.extensions);
        return r < 0 ? r : create_to_sandbox(&request, &facts, &d->record, &c->req.err);
}

static void answer_by(struct deadline *due)
{
        struct creation *x = container_of(due, struct creation, answer_by);
        struct sandbox_op *j = x->op;

        if (!sandbox_ctl__record(j->ctl)) { /* the store is slow: there is nothing to show yet */
                deadline_set(&j->service->schedule, due, usec_add(due->at, USEC_PER_SEC));
                return;
        }
        x->answered = true;
        sandbox_op__notify(j, 0, NULL);
}

static int start(struct service *s, struct service_create *c, struct draft *d)
{
        struct creation *x = xnew(struct creation);
        struct sandbox_ctl *p;
        int r = request_copy_init(&x->copy, c->request, &c->req.err);

        if (r < 0) {
                free(x);
                return r;
        }
        p = sandbox_ctl__obtain(s, str_from(d->id));
        r = tenants_charge(&s->tenants, d->record->tenant, &d->record->limits, &p->charge,
                           &c->req.err);
        if (r < 0) {
                request_copy_done(&x->copy);
                free(x);
                sandbox_ctl__settle(p); /* goes */
                return r;
        }
        x->op = sandbox_op__new(s, p, COMMAND_CREATE);
        x->op->creation = x;
        x->record = TAKE_PTR(d->record);
        x->registering = true;
        x->began = clock_mono(s->config.clock);
        memcpy(x->fingerprint, d->fingerprint, sizeof(x->fingerprint));
        deadline_init(&x->answer_by, answer_by);
        deadline_set(&s->schedule, &x->answer_by, usec_add(x->began, s->config.create_wait));
        sandbox_op__wait(x->op, &c->req);
        sandbox_op__start(x->op);
        return 0;
}

/* Who asks may leave before it is there, and still has to answer for it. */
static void tell_id(struct service_create *c, const struct draft *d, int r)
{
        static_assert(sizeof(c->id) >= sizeof(d->id), "room for an id");

        if (r == 0)
                memcpy(c->id, d->id, sizeof(d->id));
}

static int begin(struct service *s, struct service_create *c)
{
        struct err *e = &c->req.err;
        struct draft d = { 0 };
        int r = service__ready(s, e);

        if (r == 0)
                r = check(s, c);
        if (r == 0)
                r = choose_driver(s, c, &d.driver);
        if (r == 0)
                r = check_caps(c->request, d.driver, e);
        if (r == 0 && c->idempotency_key.p)
                r = replay_check_key(c->idempotency_key, e);
        if (r < 0)
                return r;
        if (c->idempotency_key.p) {
                struct sandbox_ctl *p;

                replay_id(s->config.secret, c->caller->tenant, c->idempotency_key, d.id);
                replay_fingerprint(s->config.secret, c->body, d.fingerprint);
                p = sandbox_ctl__get(s, str_from(d.id));
                if (p) {
                        r = replay(c, p, str_from(d.fingerprint));
                        tell_id(c, &d, r);
                        return r;
                }
        } else {
                ids_uuid(s->config.ids, d.id);
        }
        r = make_record(s, c, &d);
        if (r == 0)
                r = start(s, c, &d);
        tell_id(c, &d, r);
        sandbox_free(d.record);
        return r;
}

void service_replay_id(const struct service *s, const struct caller *caller, struct str key,
                       char ret[static 64])
{
        replay_id(s->config.secret, caller->tenant, key, ret);
}

void service_create(struct service *s, struct service_create *c)
{
        int r;

        req__begin(s, &c->req, sandbox_op__cancel_wait);
        c->problems = (struct problems){ 0 };
        c->id[0] = c->other_id[0] = '\0';
        c->replayed = c->about_snapshot = false;
        r = begin(s, c);
        if (r < 0)
                req__finish(&c->req, NULL, r, &c->req.err);
}
