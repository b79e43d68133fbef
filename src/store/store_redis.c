/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_redis.h"

#include <stdio.h>

#include "base/base.h"
#include "store/redis_link.h"
#include "store/store_remote.h"

/* Requests become scripts (store/redis_scripts.h); store/store_remote.h has their queue. */

#define SERVER "Redis"

struct redis {
        struct remote remote;
        struct store_redis_config config;
        struct redis_link link;
};

struct redis_request {
        struct remote_request request;
        struct redis_pending pending;
        bool in_full; /* with the text of the script */
};

static const enum redis_script script_of[] = {
        [STORE_CALL_GET] = REDIS_SCRIPT_GET,       [STORE_CALL_PUT] = REDIS_SCRIPT_PUT,
        [STORE_CALL_REMOVE] = REDIS_SCRIPT_REMOVE, [STORE_CALL_CAS] = REDIS_SCRIPT_CAS,
        [STORE_CALL_SCAN] = REDIS_SCRIPT_SCAN,
};

/* --- arguments --- */

/* Bounds as ZRANGEBYLEX has them, and numbers. */
struct arguments {
        struct str items[3 + REDIS_OWN_KEYS + 1 + 5];
        size_t n;
        char from[1 + STORE_KEY_MAX], to[1 + STORE_KEY_MAX];
        char numbers[3][24];
};

static struct str number(char text[static 24], uint64_t v)
{
        (void) snprintf(text, 24, "%llu", (unsigned long long) v);
        return str_from(text);
}

static struct str bound(char *text, char kind, struct str key)
{
        text[0] = kind;
        memcpy(text + 1, key.p, key.n);
        return str_of(text, key.n + 1);
}

/* The first key after all keys of the prefix: the prefix with its last byte incremented. */
static struct str bound_after(char *text, struct str prefix)
{
        size_t n = prefix.n;

        while (n > 0 && (uint8_t) prefix.p[n - 1] == UINT8_MAX)
                n--;
        if (n == 0)
                return STR("+");
        (void) bound(text, '(', str_of(prefix.p, n));
        text[n] = (char) ((uint8_t) text[n] + 1);
        return str_of(text, n + 1);
}

static void add_arguments(struct arguments *a, struct store_req *req)
{
        struct store_scan *sc;
        struct str start;
        bool exclusive;

        switch ((enum store_call) req->_call) {
        case STORE_CALL_GET:
                a->items[a->n++] = number(a->numbers[0], STORE_VALUE_MAX);
                break;
        case STORE_CALL_PUT:
                a->items[a->n++] = store_req_value(req);
                break;
        case STORE_CALL_REMOVE:
                a->items[a->n++] = STORE_AS(remove, req)->expected == STORE_ANY
                                           ? STR("any")
                                           : number(a->numbers[0], STORE_AS(remove, req)->expected);
                break;
        case STORE_CALL_CAS:
                a->items[a->n++] = store_req_value(req);
                a->items[a->n++] = number(a->numbers[0], STORE_AS(cas, req)->expected);
                break;
        case STORE_CALL_SCAN:
                sc = STORE_AS(scan, req);
                start = store_scan_start(sc, &exclusive);
                a->items[a->n++] = start.n > 0 ? bound(a->from, exclusive ? '(' : '[', start)
                                               : STR("-");
                a->items[a->n++] = bound_after(a->to, sc->prefix);
                a->items[a->n++] = number(a->numbers[0], sc->limit);
                a->items[a->n++] = number(a->numbers[1], STORE_SCAN_BYTES_MAX);
                a->items[a->n++] = number(a->numbers[2], STORE_VALUE_MAX);
                break;
        case STORE_CALL_MAX_:
        default:
                ASSERT(!"a call that does not exist");
        }
}

static int check(struct store_req *req)
{
        struct str key = store_req_key(req);

        for (size_t i = 0; i < REDIS_OWN_KEYS; i++)
                if (str_eq(key, str_from(redis_own_keys[i])))
                        return err_set(&req->err, ERR_INVALID,
                                       "the key %s is reserved by the store", redis_own_keys[i]);
        return 0;
}

/* --- replies --- */

static int read_version(struct store_req *req, const redisReply *reply, uint64_t *ret)
{
        struct str text = redis_text(reply);

        if (reply->type != REDIS_REPLY_STRING || parse_u64(text, ret) < 0 || *ret == 0)
                return remote_bad_reply(req, SERVER);
        return 0;
}

static int reply_get(struct store_req *req, const redisReply *reply)
{
        uint64_t version = 0;
        int r;

        if (reply->type == REDIS_REPLY_NIL)
                return store_fail_not_found(req);
        if (reply->type == REDIS_REPLY_STRING)
                return err_set(&req->err, ERR_TOO_LARGE, "the value has more than %zu bytes",
                               STORE_VALUE_MAX);
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2
            || reply->element[1]->type != REDIS_REPLY_STRING)
                return remote_bad_reply(req, SERVER);
        r = read_version(req, reply->element[0], &version);
        if (r < 0)
                return r;
        if (reply->element[1]->len > STORE_VALUE_MAX)
                return remote_bad_reply(req, SERVER);
        return store_get_set(STORE_AS(get, req), redis_text(reply->element[1]), version);
}

static int reply_scan(struct store_req *req, const redisReply *reply)
{
        struct store_scan *sc = STORE_AS(scan, req);
        int r = 0;

        if (reply->type != REDIS_REPLY_ARRAY || reply->elements % 3 != 1)
                return remote_bad_reply(req, SERVER);
        for (size_t i = 1; i < reply->elements && r == 0; i += 3) {
                redisReply *const *e = &reply->element[i];
                struct store_entry entry = { .key = redis_text(e[0]), .value = redis_text(e[2]) };

                r = read_version(req, e[1], &entry.version);
                if (r == 0
                    && (e[0]->type != REDIS_REPLY_STRING || e[2]->type != REDIS_REPLY_STRING))
                        r = remote_bad_reply(req, SERVER);
                if (r == 0)
                        r = remote_add_entry(sc, entry, SERVER);
        }
        if (r == 0)
                sc->more = sc->n > 0 && str_eq(redis_text(reply->element[0]), STR("1"));
        return r;
}

static int read_reply(struct store_req *req, const redisReply *reply)
{
        switch ((enum store_call) req->_call) {
        case STORE_CALL_GET:
                return reply_get(req, reply);
        case STORE_CALL_PUT:
                return read_version(req, reply, &STORE_AS(put, req)->version);
        case STORE_CALL_REMOVE:
                if (reply->type != REDIS_REPLY_INTEGER)
                        return remote_bad_reply(req, SERVER);
                return reply->integer == 1 ? 0 : store_fail_conflict(req);
        case STORE_CALL_CAS:
                if (reply->type == REDIS_REPLY_STRING && reply->len == 0)
                        return store_fail_conflict(req);
                return read_version(req, reply, &STORE_AS(cas, req)->version);
        case STORE_CALL_SCAN:
                return reply_scan(req, reply);
        case STORE_CALL_MAX_:
        default:
                ASSERT(!"a call that does not exist");
        }
}

/* Errors of a working Redis that can't, or may not, do it now. */
static const struct {
        const char *word;
        enum err_code code;
        const char *help;
} errors[] = {
        { "OOM ", ERR_EXHAUSTED, "Redis has no memory left; raise its maxmemory" },
        { "MISCONF ", ERR_UNAVAILABLE, "Redis cannot write to its disk; see its log" },
        { "LOADING ", ERR_UNAVAILABLE, "Redis is loading its data; try again" },
        { "BUSY ", ERR_UNAVAILABLE, "Redis is busy with a script; try again" },
        { "READONLY ", ERR_UNAVAILABLE, "Redis is a read-only replica; configure the master" },
        { "MASTERDOWN ", ERR_UNAVAILABLE, "Redis has no connection to its master" },
        { "NOREPLICAS ", ERR_UNAVAILABLE, "Redis has not enough replicas for a write" },
        { "NOAUTH ", ERR_UNAVAILABLE, "Redis requires a password; configure one" },
        { "NOPERM ", ERR_UNAVAILABLE, "Redis refuses it by its ACL; see the user's permissions" },
        { "WRONGTYPE ", ERR_INTERNAL, "the key, or one of hutch:store:*, holds no string" },
};

/* --- sending --- */

static void request_replied(struct redis_pending *p, const redisReply *reply)
{
        struct redis_request *x = container_of(p, struct redis_request, pending);
        struct store_req *req = x->request.req;
        struct remote *r = x->request.remote;
        char words[REDIS_QUOTE_MAX];
        int result;

        if (!reply)
                return remote_lost(&x->request);
        if (reply->type == REDIS_REPLY_ERROR && !x->in_full
            && str_starts_with(redis_text(reply), STR("NOSCRIPT "))) {
                x->in_full = true;
                remote_retry(&x->request);
                return remote_send_waiting(r);
        }
        store_result_reset(req);
        if (reply->type == REDIS_REPLY_ERROR) {
                result = err_set(&req->err, ERR_INTERNAL, "Redis refuses: %s",
                                 redis_quote(reply, words));
                for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
                        if (str_starts_with(redis_text(reply), str_from(errors[i].word)))
                                result = err_set(&req->err, errors[i].code, "%s", errors[i].help);
        } else {
                result = read_reply(req, reply);
        }
        remote_finish(&x->request, result);
        remote_send_waiting(r);
}

static void redis_send(struct remote *r, struct remote_request *a)
{
        struct redis *redis = container_of(r, struct redis, remote);
        struct redis_request *x = container_of(a, struct redis_request, request);
        enum redis_script script = script_of[a->req->_call];
        struct str key = store_req_key(a->req);
        struct arguments args = { .n = 3 };

        args.items[0] = x->in_full ? STR("EVAL") : STR("EVALSHA");
        args.items[1] = x->in_full ? str_from(redis_scripts[script]) : redis->link.digests[script];
        args.items[2] = key.p ? STR("4") : STR("3");
        for (size_t i = 0; i < REDIS_OWN_KEYS; i++)
                args.items[args.n++] = str_from(redis_own_keys[i]);
        if (key.p)
                args.items[args.n++] = key;
        add_arguments(&args, a->req);
        x->pending.replied = request_replied;
        redis_link_send(&redis->link, &x->pending, args.items, args.n);
}

static bool redis_has_room(struct remote *r, size_t bytes)
{
        return redis_link_has_room(&container_of(r, struct redis, remote)->link, bytes);
}

static void redis_drop(struct remote *r, const char *why)
{
        redis_link_drop(&container_of(r, struct redis, remote)->link, why);
}

static const struct remote_ops remote_redis = {
        .server = SERVER,
        .request_size = sizeof(struct redis_request),
        .check = check,
        .has_room = redis_has_room,
        .send = redis_send,
        .drop = redis_drop,
};

/* --- the backend --- */

static void link_ended(struct redis_link *l)
{
        store_closed(&container_of(l, struct redis, link)->remote.store);
}

static void redis_close(struct store *s)
{
        struct redis *r = container_of(s, struct redis, remote.store);

        /* First: libuv needs an iteration to forget the timer, and the link takes one, too. */
        remote_done(&r->remote);
        redis_link_end(&r->link);
}

static void redis_free(struct store *s)
{
        free(container_of(s, struct redis, remote.store));
}

static const struct store_ops store_redis = {
        .name = "redis",
        .run = remote_run,
        .cancel = remote_cancel,
        .close = redis_close,
        .free = redis_free,
};

struct store *store_redis_open(struct net_loop *loop, const struct store_redis_config *config)
{
        struct redis *r = xnew(struct redis);

        remote_init(&r->remote, &store_redis, &remote_redis, loop, config->wait);
        r->config = *config;
        r->remote.where = config->where;
        r->remote.log = config->log;
        r->link.loop = loop;
        r->link.config = &r->config;
        r->link.remote = &r->remote;
        r->link.ended = link_ended;
        redis_link_open(&r->link);
        return &r->remote.store;
}
