/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_redis.h"

#include <stdio.h>

#include "base/base.h"
#include "base/tree.h"
#include "net/timeout.h"
#include "store/redis_link.h"
#include "store/store_impl.h"

/*
 * A request is waiting, behind another one of its key, or asked. Of each key the last request is in a
 * tree, so that the next one finds it and queues behind it. They are not pipelined: a server that has
 * forgotten a script (SCRIPT FLUSH) refuses one request and, if another process has brought it back
 * meanwhile, not the next; repeating the first would then put it behind the second.
 */

#define ASKED_MAX 256 /* at a time; the others wait here instead of in a buffer */

struct redis {
        struct store store;
        struct store_redis_config config;
        struct redis_link link;
        struct timeout_kind wait;
        struct list waiting; /* in the order they were started */
        struct tree last;    /* of each key */
};

struct ask {
        struct tree_node node; /* in redis.last, while nobody of that key came later */
        struct redis *redis;
        struct store_req *req;
        struct list in_waiting;
        struct ask *before, *behind; /* of the same key; what has one before it is not in waiting */
        struct redis_answer answer;
        struct timeout timeout;
        bool asked;
        bool in_full; /* with the text of the script */
};

static const enum redis_script script_of[] = {
        [STORE_CALL_GET] = REDIS_SCRIPT_GET,       [STORE_CALL_PUT] = REDIS_SCRIPT_PUT,
        [STORE_CALL_REMOVE] = REDIS_SCRIPT_REMOVE, [STORE_CALL_CAS] = REDIS_SCRIPT_CAS,
        [STORE_CALL_SCAN] = REDIS_SCRIPT_SCAN,
};

/* --- arguments --- */

/* A null view for a scan. */
static struct str key_of(struct store_req *req)
{
        switch ((enum store_call) req->_call) {
        case STORE_CALL_GET:
                return STORE_AS(get, req)->key;
        case STORE_CALL_PUT:
                return STORE_AS(put, req)->key;
        case STORE_CALL_REMOVE:
                return STORE_AS(remove, req)->key;
        case STORE_CALL_CAS:
                return STORE_AS(cas, req)->key;
        case STORE_CALL_SCAN:
        case STORE_CALL_MAX_:
        default:
                return STR_NULL;
        }
}

static struct str value_of(struct store_req *req)
{
        if (req->_call == STORE_CALL_PUT)
                return STORE_AS(put, req)->value;
        return req->_call == STORE_CALL_CAS ? STORE_AS(cas, req)->value : STR_NULL;
}

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

/* What lies behind all keys of the prefix: the prefix with its last byte counted up. */
static struct str bound_behind(char *text, struct str prefix)
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

static void add_scan(struct arguments *a, struct store_scan *sc)
{
        bool exclusive;
        struct str start = store_scan_start(sc, &exclusive);

        a->items[a->n++] = start.n > 0 ? bound(a->from, exclusive ? '(' : '[', start) : STR("-");
        a->items[a->n++] = bound_behind(a->to, sc->prefix);
        a->items[a->n++] = number(a->numbers[0], sc->limit);
        a->items[a->n++] = number(a->numbers[1], STORE_SCAN_BYTES_MAX);
        a->items[a->n++] = number(a->numbers[2], STORE_VALUE_MAX);
}

static void add_arguments(struct arguments *a, struct store_req *req)
{
        switch ((enum store_call) req->_call) {
        case STORE_CALL_GET:
                a->items[a->n++] = number(a->numbers[0], STORE_VALUE_MAX);
                break;
        case STORE_CALL_PUT:
                a->items[a->n++] = value_of(req);
                break;
        case STORE_CALL_REMOVE:
                a->items[a->n++] = STORE_AS(remove, req)->expected == STORE_ANY
                                           ? STR("any")
                                           : number(a->numbers[0], STORE_AS(remove, req)->expected);
                break;
        case STORE_CALL_CAS:
                a->items[a->n++] = value_of(req);
                a->items[a->n++] = number(a->numbers[0], STORE_AS(cas, req)->expected);
                break;
        case STORE_CALL_SCAN:
                add_scan(a, STORE_AS(scan, req));
                break;
        case STORE_CALL_MAX_:
        default:
                ASSERT(!"a call that does not exist");
        }
}

static int check_request(struct store_req *req)
{
        struct str key = key_of(req);

        for (size_t i = 0; i < REDIS_OWN_KEYS; i++)
                if (str_eq(key, str_from(redis_own_keys[i])))
                        return err_set(&req->err, ERR_INVALID,
                                       "the store in Redis needs the key %s itself",
                                       redis_own_keys[i]);
        if (req->_call == STORE_CALL_SCAN
            && MAX_OF(STORE_AS(scan, req)->prefix.n, STORE_AS(scan, req)->after.n) > STORE_KEY_MAX)
                return err_set(&req->err, ERR_TOO_LARGE, "a prefix or cursor above %zu bytes",
                               STORE_KEY_MAX);
        return 0;
}

/* --- the way of a request --- */

/* Of its key the next one is on, or the one before is the last. */
static void release(struct ask *x)
{
        struct redis *r = x->redis;
        bool last = x->node._size > 0;

        timeout_clear(&x->timeout);
        list_remove(&x->in_waiting);
        tree_remove(&r->last, &x->node);
        if (x->before)
                x->before->behind = x->behind;
        if (x->before && last)
                tree_add(&r->last, &x->before->node, x->node.key);
        if (x->behind)
                x->behind->before = x->before;
        if (x->behind && !x->before)
                list_prepend(&r->waiting, &x->behind->in_waiting);
}

static void end(struct ask *x, int result)
{
        struct store_req *req = x->req;

        release(x);
        free(x);
        store_finish(req, result);
}

static int give_up(struct ask *x)
{
        const struct redis *r = x->redis;
        const char *unsure = x->asked && store_call_writes(x->req) ? "; it may have been written"
                                                                   : "";

        if (r->link.state == REDIS_READY)
                return err_set(&x->req->err, ERR_UNAVAILABLE, "Redis at %s: no answer in time%s",
                               r->config.where, unsure);
        return err_set(&x->req->err, ERR_UNAVAILABLE, "%s%s", r->link.failure.message, unsure);
}

/* --- answers --- */

static int answer_is_nonsense(struct store_req *req)
{
        return err_set(&req->err, ERR_INTERNAL, "Redis' answer makes no sense; is it a Redis?");
}

static int read_version(struct store_req *req, const redisReply *reply, uint64_t *ret)
{
        struct str text = redis_text(reply);

        if (reply->type != REDIS_REPLY_STRING || parse_u64(text, ret) < 0 || *ret == 0)
                return answer_is_nonsense(req);
        return 0;
}

static int answer_get(struct store_req *req, const redisReply *reply)
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
                return answer_is_nonsense(req);
        r = read_version(req, reply->element[0], &version);
        if (r < 0)
                return r;
        if (reply->element[1]->len > STORE_VALUE_MAX)
                return answer_is_nonsense(req);
        return store_get_set(STORE_AS(get, req), redis_text(reply->element[1]), version);
}

static int answer_put(struct store_req *req, const redisReply *reply)
{
        return read_version(req, reply, &STORE_AS(put, req)->version);
}

static int answer_remove(struct store_req *req, const redisReply *reply)
{
        if (reply->type != REDIS_REPLY_INTEGER)
                return answer_is_nonsense(req);
        return reply->integer == 1 ? 0 : store_fail_conflict(req);
}

static int answer_cas(struct store_req *req, const redisReply *reply)
{
        if (reply->type == REDIS_REPLY_STRING && reply->len == 0)
                return store_fail_conflict(req);
        return read_version(req, reply, &STORE_AS(cas, req)->version);
}

/* Keys have to be in order, and those that were asked for: callers lean on it. */
static int add_entry(struct store_scan *sc, redisReply *const *e)
{
        struct store_entry entry = { .key = redis_text(e[0]), .value = redis_text(e[2]) };
        bool exclusive;
        struct str start = store_scan_start(sc, &exclusive);
        int r = read_version(&sc->req, e[1], &entry.version);

        if (r < 0)
                return r;
        if (e[0]->type != REDIS_REPLY_STRING || e[2]->type != REDIS_REPLY_STRING || entry.key.n == 0
            || entry.key.n > STORE_KEY_MAX || entry.value.n > STORE_VALUE_MAX
            || !str_starts_with(entry.key, sc->prefix)
            || str_cmp(entry.key, start) < (exclusive ? 1 : 0))
                return answer_is_nonsense(&sc->req);
        if (sc->n > 0 && str_cmp(sc->entries[sc->n - 1].key, entry.key) >= 0)
                return answer_is_nonsense(&sc->req);
        if (!store_scan_add(sc, entry) && store_scan_result(sc) == 0)
                return answer_is_nonsense(&sc->req);
        return store_scan_result(sc);
}

static int answer_scan(struct store_req *req, const redisReply *reply)
{
        struct store_scan *sc = STORE_AS(scan, req);
        int r = 0;

        if (reply->type != REDIS_REPLY_ARRAY || reply->elements % 3 != 1)
                return answer_is_nonsense(req);
        for (size_t i = 1; i < reply->elements && r == 0; i += 3)
                r = add_entry(sc, &reply->element[i]);
        if (r == 0)
                sc->more = sc->n > 0 && str_eq(redis_text(reply->element[0]), STR("1"));
        return r;
}

static int (*const answer_to[])(struct store_req *req, const redisReply *reply) = {
        [STORE_CALL_GET] = answer_get,       [STORE_CALL_PUT] = answer_put,
        [STORE_CALL_REMOVE] = answer_remove, [STORE_CALL_CAS] = answer_cas,
        [STORE_CALL_SCAN] = answer_scan,
};

/* What Redis says when it is well but can't, or may not, at the moment. */
static const struct {
        const char *word;
        enum err_code code;
        const char *help;
} errors[] = {
        { "OOM ", ERR_EXHAUSTED, "Redis has no memory left; raise its maxmemory" },
        { "MISCONF ", ERR_UNAVAILABLE, "Redis can't write to its disk; its log tells more" },
        { "LOADING ", ERR_UNAVAILABLE, "Redis is loading its data; try again" },
        { "BUSY ", ERR_UNAVAILABLE, "Redis is busy with a script of somebody; try again" },
        { "READONLY ", ERR_UNAVAILABLE, "Redis is a read-only replica; name the master" },
        { "MASTERDOWN ", ERR_UNAVAILABLE, "Redis has no connection to its master" },
        { "NOREPLICAS ", ERR_UNAVAILABLE, "Redis has not enough replicas for a write" },
        { "NOAUTH ", ERR_UNAVAILABLE, "Redis wants a password; configure one" },
        { "NOPERM ", ERR_UNAVAILABLE, "Redis does not permit it; see its ACL for our user" },
        { "WRONGTYPE ", ERR_INTERNAL, "the key, or one of hutch:store:*, holds no string" },
};

static int answer_error(struct store_req *req, const redisReply *reply)
{
        struct str text = redis_text(reply);
        char words[REDIS_WORDS_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
                if (str_starts_with(text, str_from(errors[i].word)))
                        return err_set(&req->err, errors[i].code, "%s", errors[i].help);
        return err_set(&req->err, ERR_INTERNAL, "Redis refuses: %s", redis_words(reply, words));
}

/* --- asking --- */

static void told(struct redis_answer *answer, const redisReply *reply);

static void ask(struct ask *x)
{
        struct redis *r = x->redis;
        enum redis_script script = script_of[x->req->_call];
        struct str key = key_of(x->req);
        struct arguments a = { .n = 3 };

        a.items[0] = x->in_full ? STR("EVAL") : STR("EVALSHA");
        a.items[1] = x->in_full ? str_from(redis_scripts[script]) : r->link.digests[script];
        a.items[2] = key.p ? STR("4") : STR("3");
        for (size_t i = 0; i < REDIS_OWN_KEYS; i++)
                a.items[a.n++] = str_from(redis_own_keys[i]);
        if (key.p)
                a.items[a.n++] = key;
        add_arguments(&a, x->req);
        list_remove(&x->in_waiting);
        x->asked = true;
        x->answer.told = told;
        redis_link_send(&r->link, &x->answer, a.items, a.n);
}

static void ask_all(struct redis *r)
{
        struct list *n = list_first(&r->waiting), *next;

        for (; n && redis_link_asked(&r->link) < ASKED_MAX; n = next) {
                struct ask *x = container_of(n, struct ask, in_waiting);

                next = n->next == &r->waiting ? NULL : n->next;
                if (!redis_link_has_room(&r->link, value_of(x->req).n + STORE_KEY_MAX))
                        return;
                ask(x);
        }
}

/* Before those that came later: a read is as old as it was. */
static void ask_again(struct ask *x)
{
        x->asked = false;
        list_prepend(&x->redis->waiting, &x->in_waiting);
}

static void told(struct redis_answer *answer, const redisReply *reply)
{
        struct ask *x = container_of(answer, struct ask, answer);
        struct redis *r = x->redis;
        int result;

        if (!reply && !store_call_writes(x->req) && x->timeout.kind)
                return ask_again(x);
        if (!reply)
                return end(x, give_up(x));
        if (reply->type == REDIS_REPLY_ERROR && !x->in_full
            && str_starts_with(redis_text(reply), STR("NOSCRIPT "))) {
                x->in_full = true;
                ask_again(x);
                return ask_all(r);
        }
        store_result_reset(x->req);
        result = reply->type == REDIS_REPLY_ERROR ? answer_error(x->req, reply)
                                                  : answer_to[x->req->_call](x->req, reply);
        end(x, result);
        ask_all(r);
}

/* --- the member --- */

static void link_ready(struct redis_link *l)
{
        ask_all(container_of(l, struct redis, link));
}

/* One that was asked has its answer outstanding: only the end of the connection takes that back. */
static void waited_too_long(struct timeout *t)
{
        struct ask *x = container_of(t, struct ask, timeout);

        if (x->asked)
                redis_link_drop(&x->redis->link, "it does not answer");
        else
                end(x,
                    give_up(x)); /* there is no room, or no connection: no other one goes either */
}

static void take(struct redis *r, struct store_req *req)
{
        struct str key = key_of(req);
        struct tree_node *before;
        struct ask *x = xnew(struct ask);

        x->redis = r;
        x->req = req;
        timeout_init(&x->timeout);
        timeout_set(&x->timeout, &r->wait);
        list_init(&x->in_waiting);
        before = key.p ? tree_get(&r->last, key) : NULL;
        if (before) {
                x->before = container_of(before, struct ask, node);
                x->before->behind = x;
                tree_remove(&r->last, before);
        } else {
                list_append(&r->waiting, &x->in_waiting);
        }
        if (key.p)
                tree_add(&r->last, &x->node, key);
}

static struct ask *find(struct redis *r, struct store_req *req)
{
        struct str key = key_of(req);
        struct tree_node *last = key.p ? tree_get(&r->last, key) : NULL;
        struct ask *x = last ? container_of(last, struct ask, node) : NULL;

        while (x && x->req != req)
                x = x->before;
        if (key.p)
                return x;
        list_for_each (n, &r->waiting)
                if (container_of(n, struct ask, in_waiting)->req == req)
                        return container_of(n, struct ask, in_waiting);
        return NULL;
}

/* What was sent can't be called back. */
static void redis_cancel(struct store *s, struct store_req *req)
{
        struct ask *x = find(container_of(s, struct redis, store), req);

        if (x && !x->asked)
                end(x, err_set(&req->err, ERR_CANCELED, "canceled before it was sent to Redis"));
}

static void redis_run(struct store *s)
{
        struct redis *r = container_of(s, struct redis, store);

        for (struct store_req *req; (req = store_next(s));) {
                int result = check_request(req);

                if (result < 0)
                        store_finish(req, result);
                else
                        take(r, req);
        }
        ask_all(r);
}

static void redis_close(struct store *s)
{
        struct redis *r = container_of(s, struct redis, store);

        redis_link_end(&r->link);
}

static void link_ended(struct redis_link *l)
{
        struct redis *r = container_of(l, struct redis, link);

        timeout_kind_close(&r->wait);
        store_closed(&r->store);
}

static void redis_free(struct store *s)
{
        free(container_of(s, struct redis, store));
}

static const struct store_ops store_redis = {
        .name = "redis",
        .run = redis_run,
        .cancel = redis_cancel,
        .close = redis_close,
        .free = redis_free,
};

struct store *store_redis_open(struct net_loop *loop, const struct store_redis_config *config)
{
        struct redis *r = xnew(struct redis);

        store_init(&r->store, &store_redis, loop);
        r->config = *config;
        list_init(&r->waiting);
        tree_init(&r->last);
        timeout_kind_init(&r->wait, loop, config->wait, waited_too_long);
        r->link.loop = loop;
        r->link.config = &r->config;
        r->link.where = config->where;
        r->link.ready = link_ready;
        r->link.ended = link_ended;
        redis_link_open(&r->link);
        return &r->store;
}
