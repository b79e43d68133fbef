/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/json.h"
#include "net/alarm.h"
#include "registry/registry_impl.h"

/*
 * Theory of operation: the owner's lock.
 *
 * The problem: several processes on one store may work for the same owner at once. The store has no locks, only
 * compare-and-set of one key; processes die while they hold a lock, and their clocks differ a little.
 *
 * A lock is a key that exists while the lock is held; its value names the holder and the end of the lease. A process
 * that finds it expired replaces it, by compare-and-set. The holder knows the version that it has written: that is its
 * proof, and renewal and release compare it. So a holder that was too slow finds out and never removes the lock of
 * another process.
 *
 * All waiters of this process share one struct owner_lock. The lock asks the store, not a waiter; the first in the queue
 * when the result arrives gets it. So a waiter may leave at any time, and a lock that is granted after the last one has
 * left is released.
 *
 *         ACQUIRING ──► HELD ──► ACQUIRING (for the next waiter) or the end
 *           │▲
 *           ▼│
 *         BACKING OFF: another process holds it. Jitter keeps waiters of several processes apart
 *
 * Crash: the lease ends. A lock whose write had no result is recognized as ours by its holder id and taken again.
 */

#define BACKOFF_MIN (10 * USEC_PER_MSEC)
#define BACKOFF_MAX (1 * USEC_PER_SEC)

enum lock_state {
        LOCK_ACQUIRING,
        LOCK_BACKING_OFF,
        LOCK_HELD,
};

struct locks {
        struct registry *r;
        struct tree by_key;
        struct alarms alarms;
        size_t waiters; /* and holders */
        char holder[ID_HEX_LEN + 1];
};

struct owner_lock {
        struct tree_node by_key;
        struct locks *locks; /* NULL: the registry is gone */
        struct store *store;
        enum lock_state state;
        struct list waiters;
        struct lock_waiter *holder;
        uint64_t version; /* of our value; 0: none */
        usec_t leased;    /* length of its lease */
        usec_t backoff;
        struct alarm retry;
        struct verified_write verified;
        struct buf value;
        char key[];
};

struct lock_waiter {
        struct registry_lock *l;
        struct owner_lock *lock;
        struct list node;
        struct alarm deadline;
};

/* --- the value --- */

struct lease {
        struct str holder; /* one struct registry of one process */
        struct str node;   /* informative */
        int64_t until_ms;
};

static const struct json_field lease_fields[] = {
        JSON_STR(struct lease, holder, "holder", JSON_REQUIRED),
        JSON_STR(struct lease, node, "node", JSON_REQUIRED),
        JSON_I64(struct lease, until_ms, "until", JSON_REQUIRED, JSON_MIN(0)),
        JSON_END,
};

static void make_value(struct owner_lock *lock, usec_t length)
{
        usec_t until = usec_add(clock_wall(lock->locks->r->clock), length);
        const struct lease lease = {
                .holder = str_from(lock->locks->holder),
                .node = str_from(lock->locks->r->node),
                .until_ms = (int64_t) (until / USEC_PER_MSEC),
        };

        lock->leased = length;
        buf_reset(&lock->value);
        json_encode(&lock->value, lease_fields, &lease);
        ASSERT(!buf_failed(&lock->value));
}

enum lock_owner {
        LOCK_OWNER_NONE, /* it can't be read */
        LOCK_OWNER_SELF,
        LOCK_OWNER_OTHER,
};

static enum lock_owner read_value(const struct owner_lock *lock, struct str value,
                                  usec_t *ret_until)
{
        struct lease lease = { 0 };
        struct json_error je;
        enum lock_owner whose = LOCK_OWNER_NONE;
        struct arena a;

        arena_init(&a, 16 * KiB);
        if (json_decode(value, lease_fields, 0, &a, &lease, &je) == 0) {
                bool ours = str_eq(lease.holder, str_from(lock->locks->holder));
                int64_t max_ms = INT64_MAX / (int64_t) USEC_PER_MSEC;

                whose = ours ? LOCK_OWNER_SELF : LOCK_OWNER_OTHER;
                *ret_until = (usec_t) MIN_OF(lease.until_ms, max_ms) * USEC_PER_MSEC;
        }
        arena_done(&a);
        return whose;
}

/* --- waiters --- */

static struct lock_waiter *first_waiter(const struct owner_lock *lock)
{
        struct list *n = list_first(&lock->waiters);

        return n ? container_of(n, struct lock_waiter, node) : NULL;
}

static void waiter_free(struct lock_waiter *w)
{
        w->l->_waiter = NULL;
        w->lock->locks->waiters--;
        free(w);
}

static void lock_free(struct owner_lock *lock)
{
        if (lock->locks) {
                alarm_clear(&lock->locks->alarms, &lock->retry);
                tree_remove(&lock->locks->by_key, &lock->by_key);
        }
        buf_done(&lock->value);
        free(lock);
}

/* Leaves the queue without the lock. The last one frees the lock, unless a request to the store refers to it. */
static void waiter_leave(struct lock_waiter *w, int result)
{
        struct registry_lock *l = w->l;
        struct owner_lock *lock = w->lock;

        list_remove(&w->node);
        alarm_clear(&lock->locks->alarms, &w->deadline);
        waiter_free(w);
        op_finish(&l->req.op, result);
        if (lock->state == LOCK_BACKING_OFF && !first_waiter(lock))
                lock_free(lock);
}

static int timed_out(struct registry_lock *l)
{
        return err_set(&l->req.err, ERR_TIMEOUT, "the owner's lock is held by another process");
}

/* --- acquiring --- */

static void give_back(struct owner_lock *lock)
{
        if (lock->version > 0)
                remove_unverified(lock->store, lock->by_key.key, lock->version);
        lock_free(lock);
}

static void acquire_done(struct verified_write *s, int result);

static void acquire(struct owner_lock *lock, uint64_t expected)
{
        const struct lock_waiter *w = first_waiter(lock);

        ASSERT(w);
        lock->state = LOCK_ACQUIRING;
        make_value(lock, w->l->lease);
        lock->verified.done = acquire_done;
        verified_write_start(&lock->verified, lock->store, lock->by_key.key, expected,
                             buf_str(&lock->value));
}

static void retry(struct alarm *a)
{
        acquire(container_of(a, struct owner_lock, retry), STORE_ABSENT);
}

static void acquire_after(struct owner_lock *lock, usec_t length)
{
        lock->state = LOCK_BACKING_OFF;
        alarm_set(&lock->locks->alarms, &lock->retry,
                  usec_add(net_loop_now(lock->locks->alarms.loop), length), retry);
}

/* The first waiter leaves without the lock; the next one, if there is one, tries from the loop. */
static void acquire_failed(struct lock_waiter *w, int result, usec_t wait)
{
        acquire_after(w->lock, wait);
        waiter_leave(w, result);
}

/* Another process holds it, for that long at most. Waits between half and all of the backoff, so that processes that
 * wait for one lock do not collide each time. */
static void back_off(struct lock_waiter *w, usec_t held)
{
        struct owner_lock *lock = w->lock;
        usec_t wait;
        uint32_t random;

        ids_random(&lock->locks->r->ids, &random, sizeof(random));
        wait = MIN_OF(lock->backoff / 2 + random % (lock->backoff / 2 + 1), held);
        lock->backoff = MIN_OF(2 * lock->backoff, BACKOFF_MAX);
        if (w->l->wait == 0)
                acquire_failed(w, timed_out(w->l), wait);
        else
                acquire_after(lock, wait);
}

static void acquire_done(struct verified_write *s, int result)
{
        struct owner_lock *lock = container_of(s, struct owner_lock, verified);
        struct lock_waiter *w = first_waiter(lock);
        usec_t now, until;

        lock->version = result == 0 ? s->version : 0;
        if (!lock->locks || !w)
                return give_back(lock);
        if (result == ERR_RETURN(ERR_CONFLICT)) {
                /* It may be taken if it has expired, or can't be read, or is ours, from a write that had no result. */
                now = clock_wall(lock->locks->r->clock);
                if (s->found.p && read_value(lock, s->found, &until) == LOCK_OWNER_OTHER
                    && until > now)
                        return back_off(w, until - now);
                return acquire(lock, s->found.p ? s->found_version : STORE_ABSENT);
        }
        if (result < 0) {
                w->l->req.err = s->err;
                return acquire_failed(w, result, 0);
        }
        if (w->l->lease != lock->leased) /* it was requested for a waiter that has left since */
                return acquire(lock, lock->version);
        list_remove(&w->node);
        alarm_clear(&lock->locks->alarms, &w->deadline);
        lock->state = LOCK_HELD;
        lock->holder = w;
        lock->backoff = BACKOFF_MIN;
        return op_finish_now(&w->l->req.op, 0);
}

/* --- waiting --- */

static void deadline_passed(struct alarm *a)
{
        struct lock_waiter *w = container_of(a, struct lock_waiter, deadline);

        waiter_leave(w, timed_out(w->l));
}

static void lock_cancel(struct op *op)
{
        struct registry_lock *l = container_of(op, struct registry_lock, req.op);

        waiter_leave(l->_waiter, err_set(&l->req.err, ERR_CANCELED, "canceled"));
}

static struct owner_lock *lock_new(struct locks *ls, struct str key)
{
        struct owner_lock *lock = xcalloc(1, sizeof(*lock) + key.n);

        lock->locks = ls;
        lock->store = ls->r->store;
        lock->backoff = BACKOFF_MIN;
        list_init(&lock->waiters);
        buf_init(&lock->value, STORE_VALUE_MAX);
        memcpy(lock->key, key.p, key.n);
        tree_add(&ls->by_key, &lock->by_key, str_of(lock->key, key.n));
        return lock;
}

void registry_lock_owner(struct registry *r, struct registry_lock *l, const struct owner *owner)
{
        struct alarms *alarms = &r->locks->alarms;
        struct owner_lock *lock;
        struct lock_waiter *w;
        struct tree_node *n;
        char storage[OWNER_KEY_SIZE];
        struct buf key;
        int result;

        ASSERT(l->lease > 0);
        l->req.err = (struct err){ 0 };
        l->_waiter = NULL;
        op_begin(&l->req.op, r->loop, lock_cancel);
        result = owner_check(owner, &l->req.err);
        if (result < 0)
                return op_finish(&l->req.op, result);
        buf_init_fixed(&key, storage, sizeof(storage));
        add_owner_key(&key, LOCK_PREFIX, owner);
        n = tree_get(&r->locks->by_key, buf_str(&key));
        lock = n ? container_of(n, struct owner_lock, by_key) : lock_new(r->locks, buf_str(&key));
        if (n && l->wait == 0 && (lock->state != LOCK_ACQUIRING || first_waiter(lock)))
                return op_finish(&l->req.op, timed_out(l));
        w = xnew(struct lock_waiter);
        w->l = l;
        w->lock = lock;
        l->_waiter = w;
        r->locks->waiters++;
        list_append(&lock->waiters, &w->node);
        if (l->wait > 0)
                alarm_set(alarms, &w->deadline, usec_add(net_loop_now(alarms->loop), l->wait),
                          deadline_passed);
        if (!n)
                acquire(lock, STORE_ABSENT);
}

/* --- holding --- */

static void renewed(struct verified_write *s, int result)
{
        struct owner_lock *lock = container_of(s, struct owner_lock, verified);
        struct registry_lock *l = lock->holder->l;
        usec_t until;

        if (result == 0) {
                lock->version = s->version;
        } else if (result != ERR_RETURN(ERR_CONFLICT)) {
                l->req.err = s->err;
        } else if (s->found.p && read_value(lock, s->found, &until) == LOCK_OWNER_SELF) {
                /* An earlier renewal took effect after all. */
                lock->version = s->found_version;
                verified_write_start(s, lock->store, lock->by_key.key, lock->version,
                                     buf_str(&lock->value));
                return;
        } else {
                lock->version = 0;
                result = err_set(&l->req.err, ERR_CONFLICT, "the owner's lock was lost");
        }
        op_finish_now(&l->req.op, result);
}

void registry_lock_renew(struct registry *r, struct registry_lock *l)
{
        struct owner_lock *lock;

        ASSERT(l->_waiter && l->_waiter->lock->holder == l->_waiter);
        lock = l->_waiter->lock;
        l->req.err = (struct err){ 0 };
        op_begin(&l->req.op, r->loop, /* cancel= */ NULL);
        if (lock->version == 0) {
                op_finish(&l->req.op,
                          err_set(&l->req.err, ERR_CONFLICT, "the owner's lock was lost"));
                return;
        }
        make_value(lock, l->lease);
        lock->verified.done = renewed;
        verified_write_start(&lock->verified, lock->store, lock->by_key.key, lock->version,
                             buf_str(&lock->value));
}

void registry_unlock(struct registry *r, struct registry_lock *l)
{
        struct owner_lock *lock;

        ASSERT(l->_waiter && l->_waiter->lock->holder == l->_waiter && !op_pending(&l->req.op));
        lock = l->_waiter->lock;
        lock->holder = NULL;
        waiter_free(l->_waiter);
        if (first_waiter(lock))
                acquire(lock, lock->version);
        else
                give_back(lock);
}

/* --- life cycle --- */

struct locks *locks_new(struct registry *r)
{
        struct locks *ls = xnew(struct locks);

        ls->r = r;
        tree_init(&ls->by_key);
        alarms_init(&ls->alarms, r->loop);
        ids_hex(&r->ids, ls->holder);
        return ls;
}

/* What is left are requests to the store whose last waiter has left: their results are discarded. */
void locks_free(struct locks *ls)
{
        struct tree_node *n;

        ASSERT(ls->waiters == 0);
        while ((n = tree_take_any(&ls->by_key)))
                container_of(n, struct owner_lock, by_key)->locks = NULL;
        alarms_done(&ls->alarms);
        free(ls);
}
