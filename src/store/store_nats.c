/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_nats.h"

#include <unistd.h>

#include "base/base.h"
#include "store/nats_link.h"
#include "store/store_remote.h"

/* The requests' way is store/store_remote.h's; what is done with them in NATS is store/nats/bucket.h's, in another
 * process. Here they are frames. */

#define SERVER "NATS"
#define URLS   "--url="

/* For the process to connect to each server in turn, and to see to the bucket. */
#define PATIENCE (60 * USEC_PER_SEC)

struct nats {
        struct remote remote;
        struct nats_link link;
        struct remote_request *asked[REMOTE_IN_FLIGHT_MAX];
        uint64_t tickets[REMOTE_IN_FLIGHT_MAX]; /* of them */
        uint64_t last_ticket;
};

static struct nats *nats_of(const struct remote *r)
{
        return container_of(r, struct nats, remote);
}

static struct nats *nats_of_link(struct nats_link *l)
{
        return container_of(l, struct nats, link);
}

static struct nats *nats_of_store(struct store *s)
{
        return container_of(s, struct nats, remote.store);
}

/* --- asking --- */

/* A request_id tells its place: those of one place differ by the number of places. */
static uint64_t new_ticket(struct nats *n, struct remote_request *x)
{
        size_t at;

        do {
                at = ++n->last_ticket % REMOTE_IN_FLIGHT_MAX;
        } while (n->asked[at]);
        n->asked[at] = x;
        n->tickets[at] = n->last_ticket;
        return n->last_ticket;
}

static void nats_send(struct remote *r, struct remote_request *x)
{
        struct nats *n = nats_of(r);
        struct nats_frame f = { .head = { .what = x->req->_call, .request_id = new_ticket(n, x) },
                                .first = store_req_key(x->req),
                                .second = store_req_value(x->req) };

        if (x->req->_call == STORE_CALL_CAS)
                f.head.version = STORE_AS(cas, x->req)->expected;
        if (x->req->_call == STORE_CALL_REMOVE)
                f.head.version = STORE_AS(remove, x->req)->expected;
        if (x->req->_call == STORE_CALL_SCAN) {
                f.head.limit = STORE_AS(scan, x->req)->limit;
                f.first = STORE_AS(scan, x->req)->prefix;
                f.second = STORE_AS(scan, x->req)->after;
        }
        nats_link_send(&n->link, f);
}

static bool nats_has_room(struct remote *r, size_t bytes)
{
        return nats_link_has_room(&nats_of(r)->link, bytes);
}

static void nats_drop(struct remote *r, const char *why)
{
        nats_link_drop(&nats_of(r)->link, why);
}

static const char *nats_failure(const struct remote *r)
{
        const struct nats_link *l = &nats_of(r)->link;

        return l->state == NATS_READY ? NULL : l->failure.message;
}

static const struct remote_ops remote_nats = {
        .server = SERVER,
        .request_size = sizeof(struct remote_request),
        .has_room = nats_has_room,
        .send = nats_send,
        .drop = nats_drop,
        .failure = nats_failure,
};

/* --- answers --- */

static int reply_scan(struct store_scan *sc, const struct nats_frame *f)
{
        struct str entries = f->first;
        struct store_entry entry;
        int r;

        while ((r = nats_entry_take(&entries, &entry)) > 0) {
                r = remote_add_entry(sc, entry, SERVER);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return remote_bad_reply(&sc->req, SERVER);
        sc->more = sc->n > 0 && f->head.limit != 0;
        return 0;
}

static int reply_failure(struct store_req *req, const struct nats_frame *f)
{
        if (f->head.what > ERR_CODE_MAX_)
                return remote_bad_reply(req, SERVER);
        return err_set(&req->err, (enum err_code)(f->head.what - 1), "%.*s", STR_ARG(f->first));
}

static int answer(struct store_req *req, const struct nats_frame *f)
{
        if (f->head.what != 0)
                return reply_failure(req, f);
        if (f->head.version == 0 && req->_call != STORE_CALL_REMOVE
            && req->_call != STORE_CALL_SCAN)
                return remote_bad_reply(req, SERVER);
        switch ((enum store_call) req->_call) {
        case STORE_CALL_GET:
                if (f->first.n > STORE_VALUE_MAX)
                        return remote_bad_reply(req, SERVER);
                return store_get_set(STORE_AS(get, req), f->first, f->head.version);
        case STORE_CALL_PUT:
                STORE_AS(put, req)->version = f->head.version;
                return 0;
        case STORE_CALL_CAS:
                STORE_AS(cas, req)->version = f->head.version;
                return 0;
        case STORE_CALL_SCAN:
                return reply_scan(STORE_AS(scan, req), f);
        case STORE_CALL_REMOVE:
        case STORE_CALL_MAX_:
        default:
                return 0;
        }
}

static void link_answer(struct nats_link *l, struct nats_frame f)
{
        struct nats *n = nats_of_link(l);
        size_t at = f.head.request_id % REMOTE_IN_FLIGHT_MAX;
        struct remote_request *x = n->asked[at];

        if (!x || n->tickets[at] != f.head.request_id)
                return nats_link_drop(l, "its process talks nonsense");
        n->asked[at] = NULL;
        store_result_reset(x->req);
        remote_finish(x, answer(x->req, &f));
        remote_send_waiting(&n->remote);
}

static void link_lost(struct nats_link *l)
{
        struct nats *n = nats_of_link(l);

        for (size_t i = 0; i < ARRAY_SIZE(n->asked); i++)
                if (n->asked[i])
                        remote_lost(TAKE_PTR(n->asked[i]));
}

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

/* --- the member --- */

static void link_ready(struct nats_link *l)
{
        remote_send_waiting(&nats_of_link(l)->remote);
}

static void link_ended(struct nats_link *l)
{
        struct nats *n = nats_of_link(l);

        remote_done(&n->remote);
        store_closed(&n->remote.store);
}

static void nats_close(struct store *s)
{
        nats_link_end(&nats_of_store(s)->link);
}

static void nats_free(struct store *s)
{
        struct nats *n = nats_of_store(s);

        for (char **a = n->link.argv; *a; a++)
                free(*a);
        free((void *) n->link.argv);
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
        remote_init(&n->remote, &store_nats, &remote_nats, loop, config->wait);
        n->link.loop = loop;
        n->link.log = config->log;
        n->link.argv = make_argv(config);
        n->link.where = n->remote.where = n->link.argv[1] + strlen(URLS);
        n->link.patience = PATIENCE;
        n->link.ready = link_ready;
        n->link.answer = link_answer;
        n->link.lost = link_lost;
        n->link.ended = link_ended;
        nats_link_open(&n->link);
        *ret = &n->remote.store;
        return 0;
}
