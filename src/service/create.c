/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Create. Everything that can be refused is refused before the first write.
 *
 * Idempotency keys. A create with a key gets an id that is derived from tenant and key, so a second one with the same
 * key finds the first, in this process and after a restart. The record keeps a fingerprint of the body, which tells a
 * repeated request from another one under the same key. Both are HMACs under the secret of the installation: no one
 * outside can compute the id of a key, or test a guess of what a body held. The fingerprint is among the record's
 * extensions, under a name that clients can neither write nor read.
 */

#include "service/service_impl.h"

#include <stdio.h>

#include "base/base.h"
#include "base/secret.h"
#include "model/extensions.h"
#include "model/limits.h"
#include "model/text.h"

#define EXTENSION_OURS        STR("hutch.")
#define EXTENSION_DRIVER      STR("hutch.driver")
#define EXTENSION_IDEMPOTENCY STR("hutch.idempotency")

#define IDEMPOTENCY_KEY_MAX 255 /* bytes; clients send a UUID */

/* Twice what a request may take: the copy rounds its pieces up differently. */
#define REQUEST_COPY_MAX (2 * ARENA_MAX_REQUEST)

/* --- checks --- */

static int add_problem(struct service_create *c, const char *message)
{
        problems_add(&c->problems, c->arena, "value_error", "", message);
        c->problems.code = CODE_INVALID_PARAMETER;
        return err_set(&c->req.err, ERR_INVALID, "%s", message);
}

static int check_request(struct service *s, struct service_create *c)
{
        const struct json_map *x = &c->request->extensions;
        char message[256];
        int r = service__ready(s, &c->req.err);

        if (r < 0)
                return r;
        if (create_check(c->request, &s->config.policy, c->arena, &c->problems) < 0)
                return err_set(&c->req.err, ERR_INVALID, "%.*s",
                               STR_ARG(problems_message(&c->problems)));
        /* A client that could write our names could pose as a repeated create. */
        for (size_t i = 0; i < x->n; i++) {
                struct str key = x->items[i].key;

                if (!str_starts_with(key, EXTENSION_OURS) || str_eq(key, EXTENSION_DRIVER)
                    || str_eq(key, EXTENSION_NETWORK))
                        continue;
                (void) snprintf(message, sizeof(message), "extensions: %s is not for clients",
                                QUOTED(key));
                return add_problem(c, message);
        }
        if (c->idempotency_key.p && !text_is_clean(c->idempotency_key, IDEMPOTENCY_KEY_MAX))
                return err_set(&c->req.err, ERR_INVALID,
                               "the idempotency key must be text of 1 to %d characters",
                               IDEMPOTENCY_KEY_MAX);
        return 0;
}

/* A sandbox is restored by the driver that keeps the snapshot. */
static int choose_by_snapshot(struct service *s, struct service_create *c, struct driver **ret)
{
        const struct snapshot *from = service_find_snapshot(s, c->caller, c->request->snapshot_id);
        struct str name = extensions_get(&c->request->extensions, EXTENSION_DRIVER);
        struct err *e = &c->req.err;
        bool can_restore = false;

        for (size_t i = 0; i < s->n_drivers; i++)
                can_restore |= driver_can(s->drivers[i].driver, DRIVER_SNAPSHOT);
        if (!from && !can_restore)
                return err_set(e, ERR_UNSUPPORTED,
                               "snapshotId: no driver of this server can take snapshots");
        c->about_snapshot = true;
        /* An admin sees the snapshots of all tenants, and creates sandboxes only for its own. */
        if (!from || !str_eq(from->tenant, c->caller->tenant))
                return err_set(e, ERR_NOT_FOUND, "there is no such snapshot");
        if (from->status.state != SNAPSHOT_READY)
                return err_set(e, ERR_CONFLICT, "the snapshot is %s, not Ready",
                               snapshot_state_to_string(from->status.state));
        if (name.p && !str_eq(name, from->driver))
                return err_set(e, ERR_INVALID,
                               "extensions.hutch.driver: the snapshot belongs to the driver '%.*s'",
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
                               "this server has no driver, so it cannot create sandboxes; its "
                               "operator chooses one with hutchd --driver");
        if (c->request->snapshot_id.p)
                return choose_by_snapshot(s, c, ret);
        *ret = name.p ? service__driver(s, name) : s->drivers[0].driver;
        if (*ret)
                return 0;
        (void) snprintf(message, sizeof(message),
                        "extensions.hutch.driver: there is no driver %s here", QUOTED(name));
        return add_problem(c, message);
}

#if defined(__x86_64__)
#define OUR_ARCH STR("amd64")
#elif defined(__aarch64__)
#define OUR_ARCH STR("arm64")
#else
#error "unknown platform"
#endif

static int check_caps(const struct create_request *w, const struct driver *d, struct err *e)
{
        int r = driver_require(d, driver_caps_for_create(w), e);

        if (r < 0)
                return r;
        if (!w->platform)
                return 0;
        if (!str_eq(w->platform->os, STR("linux")))
                return err_set(e, ERR_UNSUPPORTED, "platform.os: sandboxes here are linux");
        if (!str_eq(w->platform->arch, OUR_ARCH))
                return err_set(e, ERR_UNSUPPORTED, "platform.arch: sandboxes here are %s",
                               OUR_ARCH.p);
        return 0;
}

/* --- idempotency keys --- */

void service_replay_id(const struct service *s, const struct caller *caller, struct str key,
                       char ret[static 64])
{
        uint8_t tag[HMAC_SHA256_SIZE];
        scoped(buf_done) struct buf text;

        /* Neither part can hold a NUL, so the text is unambiguous. */
        buf_init(&text, NAME_MAX_TEXT + 1 + IDEMPOTENCY_KEY_MAX);
        buf_add_str(&text, caller->tenant);
        buf_add_char(&text, '\0');
        buf_add_str(&text, key);
        ASSERT(!buf_failed(&text));
        hmac_sha256(s->config.secret, buf_str(&text), tag);
        id_uuid_from(tag, ret);
}

/* There is a sandbox of this key, or one is being created. */
static int replay(struct service_create *c, struct sandbox_ctl *ctl, struct str fingerprint)
{
        const struct sandbox *record = sandbox_ctl__record(ctl);
        struct creation *creation = ctl->current ? ctl->current->creation : NULL;
        struct str before;

        if (record)
                before = extensions_get(&record->extensions, EXTENSION_IDEMPOTENCY);
        else if (creation)
                before = str_from(creation->fingerprint);
        else
                return err_set(&c->req.err, ERR_UNAVAILABLE,
                               "the sandbox of this idempotency key is being deleted");
        if (!str_eq_secret(before, fingerprint))
                return err_set(&c->req.err, ERR_CONFLICT,
                               "the idempotency key was used for another request");
        c->replayed = true;
        if (creation && !creation->answered)
                sandbox_op__wait(ctl->current, &c->req);
        else
                req__finish(&c->req, ctl, 0, NULL);
        return 0;
}

/* --- the record --- */

static int make_record(struct service *s, struct service_create *c, const struct driver *driver,
                       struct creation *x)
{
        const struct owner own = { .organization_id = c->caller->tenant,
                                   .project_id = STR("default"),
                                   .user_id = c->caller->principal,
                                   .scope = { .kind = SCOPE_SHARED_PROJECT_USER } };
        const struct create_facts facts = {
                .id = str_from(c->id),
                .node = s->config.node,
                .tenant = c->caller->tenant,
                .driver = str_from(driver_name(driver)),
                .owner = c->owner ? *c->owner : own,
                .owner_bound = c->owner_bound,
                .git_configured = c->git_configured,
                .now = service__now(s),
        };
        struct create_request request = *c->request;
        size_t n = request.extensions.n;
        struct json_pair *items;

        if (x->fingerprint[0]) { /* the caller's own list stays as it is */
                items = arena_alloc_array(c->arena, n + 1, sizeof(*items));
                if (!items)
                        return err_set(&c->req.err, ERR_TOO_LARGE,
                                       "the request does not fit into memory");
                if (n > 0)
                        memcpy(items, request.extensions.items, n * sizeof(*items));
                items[n] = (struct json_pair){ EXTENSION_IDEMPOTENCY, str_from(x->fingerprint) };
                request.extensions = (struct json_map){ items, n + 1 };
        }
        return create_to_sandbox(&request, &facts, &x->record, &c->req.err);
}

/* --- the operation --- */

int request_copy_init(struct request_copy *c, const struct create_request *from, struct err *e)
{
        *c = (struct request_copy){ 0 };
        arena_init(&c->arena, REQUEST_COPY_MAX);
        /* The table names the secrets as well, so the copy is complete. */
        if (json_copy_struct(create_fields, from, &c->arena, &c->request) == 0)
                return 0;
        request_copy_done(c);
        return err_set(e, ERR_TOO_LARGE, "the request does not fit into memory");
}

void request_copy_done(struct request_copy *c)
{
        arena_wipe(&c->arena);
        c->request = (struct create_request){ 0 };
}

static void answer_by(struct deadline *deadline)
{
        struct creation *x = container_of(deadline, struct creation, answer_by);
        struct sandbox_op *o = x->op;

        if (!sandbox_ctl__record(o->ctl)) { /* the store is slow: there is nothing to show yet */
                deadline_set(&o->service->schedule, deadline, usec_add(deadline->at, USEC_PER_SEC));
                return;
        }
        x->answered = true;
        sandbox_op__notify(o, 0, NULL);
}

void creation__freep(struct creation **x)
{
        if (!*x)
                return;
        request_copy_done(&(*x)->copy);
        sandbox_free((*x)->record);
        free(*x);
        *x = NULL;
}

/* Checks the request and makes the operation that carries it out; *ret is NULL if the request is finished already, as a
 * repetition. */
static int create_prepare(struct service *s, struct service_create *c, struct sandbox_op **ret)
{
        scoped(creation__freep) struct creation *x = xnew(struct creation);
        uint8_t tag[HMAC_SHA256_SIZE];
        struct driver *d = NULL;
        struct sandbox_ctl *ctl;
        struct sandbox_op *o;
        int r = check_request(s, c);

        *ret = NULL;
        if (r == 0)
                r = choose_driver(s, c, &d);
        if (r == 0)
                r = check_caps(c->request, d, &c->req.err);
        if (r < 0)
                return r;
        if (c->idempotency_key.p) {
                service_replay_id(s, c->caller, c->idempotency_key, c->id);
                hmac_sha256(s->config.secret, c->body, tag);
                hex_encode(x->fingerprint, tag, sizeof(tag));
                ctl = sandbox_ctl__get(s, str_from(c->id));
                if (ctl)
                        return replay(c, ctl, str_from(x->fingerprint));
        } else {
                ids_uuid(s->config.ids, c->id);
        }
        r = make_record(s, c, d, x);
        if (r == 0)
                r = request_copy_init(&x->copy, c->request, &c->req.err);
        if (r < 0)
                return r;
        ctl = sandbox_ctl__obtain(s, str_from(c->id));
        r = tenants_charge(&s->tenants, x->record->tenant, &x->record->limits, &ctl->charge,
                           &c->req.err);
        if (r < 0) {
                sandbox_ctl__settle(ctl); /* frees it */
                return r;
        }
        o = sandbox_op__new(s, ctl, COMMAND_CREATE);
        o->registers = true;
        x->op = o;
        x->began = clock_mono(s->config.clock);
        deadline_init(&x->answer_by, answer_by);
        deadline_set(&s->schedule, &x->answer_by, usec_add(x->began, s->config.create_wait));
        o->creation = TAKE_PTR(x);
        sandbox_op__wait(o, &c->req);
        *ret = o;
        return 0;
}

void service_create(struct service *s, struct service_create *c)
{
        struct sandbox_op *o;
        int r;

        req__begin(s, &c->req, sandbox_op__cancel_wait);
        c->problems = (struct problems){ 0 };
        c->id[0] = c->other_id[0] = '\0';
        c->replayed = c->about_snapshot = false;
        r = create_prepare(s, c, &o);
        if (r < 0) {
                c->id[0] = '\0'; /* which is for a caller that leaves before the sandbox is there */
                req__finish(&c->req, NULL, r, &c->req.err);
        } else if (o) {
                sandbox_op__start(o);
        }
}
