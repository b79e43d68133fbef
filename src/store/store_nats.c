/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_nats.h"

#include <unistd.h>

#include "base/base.h"
#include "net/worker.h"
#include "store/nats_protocol.h"
#include "store/store_remote.h"

/*
 * store/store_remote.h decides when a request is sent; store/nats/bucket.h carries it out, in the helper process; here
 * it becomes a message. The helper is killed and started again after any failure, and the next one is not started before
 * the last one is gone: what that one was about to write is then written, or never.
 */

#define SERVER "NATS"
#define URLS   "--url="

/* For the helper to try each server in turn and to prepare the bucket. */
#define START_TIMEOUT (60 * USEC_PER_SEC)

#define OUT_MAX (16 * MiB)

struct nats {
        struct remote remote;
        struct worker worker;
        char **argv;
        char *name; /* "NATS at URL", for messages */
};

struct nats_request {
        struct remote_request remote;
        struct worker_request request;
};

static struct nats *nats_of_worker(struct worker *w)
{
        return container_of(w, struct nats, worker);
}

/* --- requests --- */

static void request_failed(struct worker_request *r, const struct err *e)
{
        (void) e; /* remote.failure says why */
        remote_lost(&container_of(r, struct nats_request, request)->remote);
}

static void nats_send(struct remote *r, struct remote_request *x)
{
        struct nats_request *q = container_of(x, struct nats_request, remote);
        struct nats_message m = { .what = x->req->_call,
                                  .first = store_req_key(x->req),
                                  .second = store_req_value(x->req) };
        scoped(buf_done) struct buf b;

        if (x->req->_call == STORE_CALL_CAS)
                m.version = STORE_AS(cas, x->req)->expected;
        if (x->req->_call == STORE_CALL_REMOVE)
                m.version = STORE_AS(remove, x->req)->expected;
        if (x->req->_call == STORE_CALL_SCAN) {
                m.limit = STORE_AS(scan, x->req)->limit;
                m.first = STORE_AS(scan, x->req)->prefix;
                m.second = STORE_AS(scan, x->req)->after;
        }
        worker_request_init(&container_of(r, struct nats, remote)->worker, &q->request,
                            request_failed);
        m.request_id = q->request.id;
        buf_init(&b, NATS_MESSAGE_MAX);
        nats_message_add(&b, &m);
        worker_request_send(&q->request, buf_str(&b), -EBADF);
}

static bool nats_has_room(struct remote *r, size_t bytes)
{
        return worker_has_room(&container_of(r, struct nats, remote)->worker, bytes + 4 * KiB);
}

static void nats_drop(struct remote *r, const char *why)
{
        worker_fail(&container_of(r, struct nats, remote)->worker, "%s", why);
}

static const struct remote_ops remote_nats = {
        .server = SERVER,
        .request_size = sizeof(struct nats_request),
        .has_room = nats_has_room,
        .send = nats_send,
        .drop = nats_drop,
};

/* --- replies --- */

static int reply_scan(struct store_scan *sc, const struct nats_message *m)
{
        struct str entries = m->first;
        struct store_entry entry;
        int r;

        while ((r = nats_entry_take(&entries, &entry)) > 0) {
                r = remote_add_entry(sc, entry, SERVER);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return remote_bad_reply(&sc->req, SERVER);
        sc->more = sc->n > 0 && m->limit != 0;
        return 0;
}

static int read_reply(struct store_req *req, const struct nats_message *m)
{
        if (m->what > ERR_CODE_MAX_)
                return remote_bad_reply(req, SERVER);
        if (m->what != 0)
                return err_set(&req->err, (enum err_code)(m->what - 1), "%.*s", STR_ARG(m->first));
        if (m->version == 0 && req->_call != STORE_CALL_REMOVE && req->_call != STORE_CALL_SCAN)
                return remote_bad_reply(req, SERVER);
        switch ((enum store_call) req->_call) {
        case STORE_CALL_GET:
                if (m->first.n > STORE_VALUE_MAX)
                        return remote_bad_reply(req, SERVER);
                return store_get_set(STORE_AS(get, req), m->first, m->version);
        case STORE_CALL_PUT:
                STORE_AS(put, req)->version = m->version;
                return 0;
        case STORE_CALL_CAS:
                STORE_AS(cas, req)->version = m->version;
                return 0;
        case STORE_CALL_SCAN:
                return reply_scan(STORE_AS(scan, req), m);
        case STORE_CALL_REMOVE:
        case STORE_CALL_MAX_:
        default:
                return 0;
        }
}

static void on_message(struct worker *w, struct str bytes)
{
        struct nats *n = nats_of_worker(w);
        struct worker_request *r = NULL;
        struct nats_message m;
        struct nats_request *q;
        bool good = nats_message_read(bytes, &m) == 0;

        if (good && m.request_id == 0) { /* about the connection to NATS */
                if (m.what != 0)
                        return worker_fail(w, "%.*s", STR_ARG(m.first));
                if (w->state != WORKER_STARTING)
                        return worker_fail(w, "the helper process broke the protocol");
                worker_ready(w);
                return remote_connected(&n->remote);
        }
        if (good)
                r = worker_request_get(w, m.request_id);
        if (!r)
                return worker_fail(w, "the helper process broke the protocol");
        q = container_of(r, struct nats_request, request);
        worker_request_end(r);
        store_result_reset(q->remote.req);
        remote_finish(&q->remote, read_reply(q->remote.req, &m));
        return remote_send_waiting(&n->remote);
}

static void on_connected(struct worker *w)
{
        (void) w; /* it speaks first, once it is connected to NATS */
}

static void on_lost(struct worker *w)
{
        (void) remote_disconnected(&nats_of_worker(w)->remote, w->error.message);
}

static void on_drained(struct worker *w)
{
        remote_send_waiting(&nats_of_worker(w)->remote);
}

static void on_closed(struct worker *w)
{
        store_closed(&nats_of_worker(w)->remote.store);
}

static const struct worker_ops worker_ops = {
        .connected = on_connected,
        .message = on_message,
        .lost = on_lost,
        .drained = on_drained,
        .closed = on_closed,
};

/* --- the process' command line --- */

static void add(char ***argv, size_t *n, const char *name, const char *value)
{
        size_t size;

        if (!value)
                return;
        size = strlen(name) + strlen(value) + 1;
        *argv = xrealloc(*argv, *n + 2, sizeof(char *));
        (*argv)[*n] = xcalloc(1, size);
        (void) snprintf((*argv)[*n], size, "%s%s", name, value);
        (*argv)[++*n] = NULL;
}

static void add_number(char ***argv, size_t *n, const char *name, uint64_t value)
{
        char text[24];

        (void) snprintf(text, sizeof(text), "%llu", (unsigned long long) value);
        add(argv, n, name, text);
}

static char **make_argv(const struct store_nats_config *c)
{
        char **argv = NULL;
        size_t n = 0;

        add(&argv, &n, "", c->program);
        add(&argv, &n, URLS, c->urls);
        add(&argv, &n, "--bucket=", c->bucket);
        add_number(&argv, &n, "--replicas=", c->replicas);
        add_number(&argv, &n, "--wait-ms=", c->wait / USEC_PER_MSEC);
        add(&argv, &n, "--user=", c->user);
        add(&argv, &n, "--password-file=", c->password_file);
        add(&argv, &n, "--token-file=", c->token_file);
        add(&argv, &n, "--credentials-file=", c->credentials_file);
        add(&argv, &n, "--ca-file=", c->ca_file);
        add(&argv, &n, "--cert-file=", c->cert_file);
        add(&argv, &n, "--key-file=", c->key_file);
        return argv;
}

/* --- the store --- */

static void nats_close(struct store *s)
{
        struct nats *n = container_of(s, struct nats, remote.store);

        /* First: libuv needs an iteration to forget the timer, and the worker takes one, too. */
        remote_done(&n->remote);
        worker_close(&n->worker);
}

static void nats_free(struct store *s)
{
        struct nats *n = container_of(s, struct nats, remote.store);

        for (char **a = n->argv; *a; a++)
                free(*a);
        free((void *) n->argv);
        free(n->name);
        free(n);
}

static const struct store_ops store_nats = {
        .name = "nats",
        .run = remote_run,
        .cancel = remote_cancel,
        .close = nats_close,
        .free = nats_free,
};

int store_nats_open(struct net_loop *loop, const struct store_nats_config *config,
                    struct store **ret, struct err *e)
{
        struct nats *n;

        if (access(config->program, X_OK) < 0)
                return err_errno(e, -errno, "the program %s can't be run", config->program);
        n = xnew(struct nats);
        n->argv = make_argv(config);
        remote_init(&n->remote, &store_nats, &remote_nats, loop, config->wait);
        n->remote.where = n->argv[1] + strlen(URLS);
        n->remote.log = config->log;
        n->name = xcalloc(1, strlen(n->remote.where) + sizeof(SERVER " at "));
        (void) snprintf(n->name, strlen(n->remote.where) + sizeof(SERVER " at "), SERVER " at %s",
                        n->remote.where);
        *ret = &n->remote.store;
        return worker_open(&n->worker, loop, &worker_ops,
                           &(struct worker_config){ .name = n->name,
                                                    .argv = n->argv,
                                                    .frame_max = NATS_MESSAGE_MAX,
                                                    .out_max = OUT_MAX,
                                                    .die_with_parent = true,
                                                    .start_timeout = START_TIMEOUT,
                                                    .backoff_max = REMOTE_BACKOFF_MAX });
}
