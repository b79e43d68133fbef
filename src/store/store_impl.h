/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_STORE_IMPL_H
#define HUTCH_STORE_STORE_IMPL_H

/*
 * For people who write a member of the family.
 *
 * The facade (store.c) does what all members would do alike: it checks arguments, queues requests
 * in the order they were started, calls `run` at the end of the turn, takes canceled requests out
 * of the queue, counts what is under way and closes the member when nothing is.
 *
 * So a member sees all requests of a turn at once: it can write them in one transaction or send
 * them in one packet. In `run` it takes requests with store_next, one after the other, and leads
 * each to store_finish, at once or later. A member that leaves requests in the queue asks for
 * another turn by store_again. Requests on one key are finished in the order they were taken.
 *
 * Results are given by store_get_set, store_scan_add and the version members; a member that runs a
 * request again calls store_result_reset before. A failed request has its err set:
 *
 *         return store_finish(req, err_set(&req->err, ERR_UNAVAILABLE, "connect to %s", host));
 */

#include "base/base.h"
#include "store/store.h"

enum store_call {
        STORE_CALL_GET,
        STORE_CALL_PUT,
        STORE_CALL_REMOVE,
        STORE_CALL_CAS,
        STORE_CALL_SCAN,
        STORE_CALL_MAX_,
};

typedef void store_run_fn(struct store *s);
typedef void store_cancel_fn(struct store *s, struct store_req *req);
typedef void store_close_fn(struct store *s);
typedef void store_free_fn(struct store *s);

struct store_ops {
        const char *name;

        store_run_fn *run;

        /* A request that was taken is no longer wanted; it must still be finished. NULL: what was
         * taken can't be stopped. */
        store_cancel_fn *cancel;

        /* Nothing is under way and nothing will come: says farewell to whatever is out there and
         * leads to store_closed. NULL: there is nothing to say. */
        store_close_fn *close;

        /* Frees the object that the struct store is part of. */
        store_free_fn *free;
};

/* The member embeds this. */
struct store {
        const struct store_ops *ops;
        struct net_loop *loop;
        struct list _queue;
        struct net_task _task;
        size_t _under_way;
        struct store_close *_close; /* set once closing was asked for */
        bool _close_begun;
        bool _close_ended;
};

void store_init(struct store *s, const struct store_ops *ops, struct net_loop *loop);

/* The next request of the queue, which is the member's from then on; NULL at the end. */
struct store_req *store_next(struct store *s);

/* Does nothing if the queue is empty. */
void store_again(struct store *s);

void store_finish(struct store_req *req, int result);

void store_closed(struct store *s);

/* The operation that a request is part of: STORE_AS(get, req)->key. */
#define STORE_AS(call, r) container_of(r, struct store_##call, req)

/* Null views for a scan, and where there is no value. */
struct str store_req_key(const struct store_req *req);
struct str store_req_value(const struct store_req *req);

static inline bool store_call_writes(const struct store_req *req)
{
        return req->_call == STORE_CALL_PUT || req->_call == STORE_CALL_REMOVE
               || req->_call == STORE_CALL_CAS;
}

/* --- results --- */

void store_result_reset(struct store_req *req);

/* 0 or a code with its err. */
int store_get_set(struct store_get *g, struct str value, uint64_t version) must_check;

/* False if the page takes no more: the entry was not added and belongs to the next one. After it,
 * store_scan_result says whether memory was the reason. */
bool store_scan_add(struct store_scan *sc, struct store_entry entry) must_check;
int store_scan_result(struct store_scan *sc) must_check;

/* The first key a page may hold: the greater of prefix and cursor. *ret_exclusive: only what lies
 * behind it. */
struct str store_scan_start(const struct store_scan *sc, bool *ret_exclusive);

/* One text for all members. */
int store_fail_conflict(struct store_req *req);
int store_fail_not_found(struct store_req *req);

/* --- from one store to another, for members that wrap a member --- */

/* Starts any request whose call and arguments are filled in. */
void store_start(struct store *s, struct store_req *req);

#endif
