/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_STORE_IMPL_H
#define HUTCH_STORE_STORE_IMPL_H

/*
 * For authors of a backend.
 *
 * The facade (store.c) does what all backends would do alike: it checks arguments, queues requests in the order they were
 * started, calls `run` at the end of the iteration, removes canceled requests from the queue, counts requests in progress
 * and closes the backend when there are none.
 *
 * So a backend sees all requests of an iteration at once: it can write them in one transaction or send them in one packet.
 * In `run` it takes requests with store_next and leads each to store_finish, at once or later. A backend that leaves
 * requests in the queue calls store_again. Requests on one key are finished in the order they were taken.
 *
 * store_finish may call the starter's `done` before it returns.
 *
 * Results are set by store_get_set, store_scan_add and the version members; a backend that runs a request again calls
 * store_result_reset before. A failed request has its err set:
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

        /* Cancels a request that was taken; it must still be finished. NULL: that is not possible. */
        store_cancel_fn *cancel;

        /* No request is in progress and none will come: closes connections and leads to store_closed. NULL: nothing to
         * close. */
        store_close_fn *close;

        /* Frees the object that the struct store is part of. */
        store_free_fn *free;
};

/* The backend embeds this. */
struct store {
        const struct store_ops *ops;
        struct net_loop *loop;
        struct list _queue;
        struct net_task _task;
        size_t _under_way;
        struct store_close *_close; /* set by store_close */
        bool _close_begun;
        bool _close_ended;
};

void store_init(struct store *s, const struct store_ops *ops, struct net_loop *loop);

/* The next request of the queue, which the backend must finish; NULL at the end. */
struct store_req *store_next(struct store *s);

/* Does nothing if the queue is empty. */
void store_again(struct store *s);

void store_finish(struct store_req *req, int result);

void store_closed(struct store *s);

/* The operation that a request belongs to: STORE_AS(get, req)->key. */
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

/* 0, or a code with req.err set. */
int store_get_set(struct store_get *g, struct str value, uint64_t version) must_check;

/* False if the page is full: the entry was not added and belongs to the next one. store_scan_result then says whether memory
 * was the reason. */
bool store_scan_add(struct store_scan *sc, struct store_entry entry) must_check;
int store_scan_result(struct store_scan *sc) must_check;

/* The first key a page may hold: the greater of prefix and cursor. *ret_exclusive: only keys after it. */
struct str store_scan_start(const struct store_scan *sc, bool *ret_exclusive);

/* One message for all backends. */
int store_fail_conflict(struct store_req *req);
int store_fail_not_found(struct store_req *req);

#endif
