/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_STORE_H
#define HUTCH_STORE_STORE_H

/*
 * A state store: values by key.
 *
 * The interface is what an embedded database, Redis and a NATS bucket have in common: single keys, versions,
 * compare-and-set of one key, and paged scans in key order. There are no transactions over several keys: write an intent
 * first and repair after a crash.
 *
 * Keys are 1 to STORE_KEY_MAX bytes, values 0 to STORE_VALUE_MAX, any bytes, NUL too. Keys are ordered as memcmp orders
 * them, a prefix before what it begins.
 *
 * Versions. Every successful put and cas gives its key a new version, greater than any the key has had, also before it was
 * removed. Otherwise a process that read version 1, while the key was removed and created anew with version 1, would
 * overwrite a value it never saw. No version is 0. Versions of different keys can't be compared.
 *
 * Operations (the rules are in net/op.h). The caller embeds a struct store_get (put, …), gives its op a `done` by op_init
 * and starts it.
 *
 * - Keys and values that are passed in are not copied: they stay valid until `done`.
 * - Results are views that are valid until `done` returns. The caller frees nothing. `done` may free the operation or
 *   start it again.
 * - The result is 0, or a domain code with a message in req.err.
 * - Operations on one key take effect, and complete, in the order they were started. Operations on different keys, and
 *   scans, are not ordered among each other; but an operation sees everything that was done before it was started.
 * - A write that is done is durable, as far as the backend guarantees durability.
 *
 * The codes:
 *
 *   ERR_NOT_FOUND    get: there is no such key
 *   ERR_CONFLICT     cas, remove: the key does not have the expected version (any more)
 *   ERR_INVALID      an empty key, or a scan of no entries
 *   ERR_TOO_LARGE    a key or value above its maximum
 *   ERR_EXHAUSTED    no room (a full disk); reads go on, and writes once there is room again
 *   ERR_CANCELED     op_cancel came in time
 *   ERR_UNAVAILABLE  the store does not respond, or is being closed
 *   ERR_INTERNAL     the store's data are damaged
 *
 * After the first five nothing was changed. After any other code a write may have happened or not, now or a little later:
 * read before you decide. Local backends are better than that, but no caller may rely on it.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "net/op.h"

#define STORE_KEY_MAX        (1 * KiB)
#define STORE_VALUE_MAX      (1 * MiB)
#define STORE_SCAN_MAX       1000      /* entries of a page */
#define STORE_SCAN_BYTES_MAX (4 * MiB) /* keys and values of a page */

/* Special expected versions. */
#define STORE_ABSENT ((uint64_t) 0) /* cas: the key must not exist */
#define STORE_ANY    UINT64_MAX     /* remove: any version, or none */

struct store;

/* --- operations --- */

/* The beginning of each of them. */
struct store_req {
        struct op op;
        struct err err; /* set if the result is negative */

        struct store *_store;
        struct op_wrap _wrap;
        struct list _node;
        unsigned _call;  /* enum store_call */
        bool _taken;     /* by the backend, which will finish it */
        int _result;     /* the backend's, until then */
        struct buf _out; /* bytes of the result */
};

struct store_get {
        struct store_req req;
        struct str key;

        struct str value; /* result */
        uint64_t version;
};

struct store_put {
        struct store_req req;
        struct str key;
        struct str value;

        uint64_t version; /* result */
};

struct store_remove {
        struct store_req req;
        struct str key;
        uint64_t expected;
};

struct store_cas {
        struct store_req req;
        struct str key;
        struct str value;
        uint64_t expected;

        uint64_t version; /* result */
};

struct store_entry {
        struct str key;
        struct str value;
        uint64_t version;
};

struct store_scan {
        struct store_req req;
        struct str prefix;
        struct str after;
        unsigned limit;

        struct store_entry *entries; /* result, in key order */
        unsigned n;
        bool more; /* there may be more after the last entry */
};

/* Starts a request that one of the following has filled in: store_start(s, store_get_req(&x->get, key)). */
void store_start(struct store *s, struct store_req *req);

struct store_req *store_get_req(struct store_get *g, struct str key);
struct store_req *store_put_req(struct store_put *p, struct str key, struct str value);

/* Removes a key of that version. With STORE_ANY removing what does not exist succeeds. */
struct store_req *store_remove_req(struct store_remove *r, struct str key, uint64_t expected);

/* Writes the value if the key has the expected version, or does not exist (STORE_ABSENT). */
struct store_req *store_cas_req(struct store_cas *c, struct str key, uint64_t expected,
                                struct str value);

/* A page of the entries whose keys begin with the prefix and follow the cursor `after`: null for the first page, then a copy
 * of the last key of the page before. A page has at most `limit` entries, and fewer if they are large; if `more`, it has at
 * least one.
 *
 * Pages are no snapshot. A key that exists all the time is seen exactly once; one that is added or removed meanwhile is
 * seen once or never. */
struct store_req *store_scan_req(struct store_scan *sc, struct str prefix, struct str after,
                                 unsigned limit);

/* --- walks --- */

/*
 * All entries of a prefix, page by page. `page` is the `done` of each page's scan: with 0 and the entries in
 * scan.entries, which are valid until it returns, or with a negative result and scan.req.err, which ends the walk. It
 * begins with store_walk_of, which notes where the page ends. Then or later store_walk_next reads the next page; false:
 * there is none. Pages are small because decoding one holds up the loop.
 */
#define STORE_WALK_PAGE 100 /* entries of a page, at most */

struct store_walk {
        struct store_scan scan;

        struct store *_store;
        struct str _prefix;
        struct buf _after; /* the last key of the page */
        bool _more;
};

/* The prefix stays valid until the end. May be started again. */
void store_walk(struct store *s, struct store_walk *w, struct str prefix, op_done_fn *page);
struct store_walk *store_walk_of(struct op *op, int result);
bool store_walk_next(struct store_walk *w);

/* Fine for a zeroed one. */
void store_walk_done(struct store_walk *w);

/* --- life cycle --- */

struct store_close {
        struct op op;

        struct store *_store;
        struct op_wrap _wrap;
};

/* Operations that are started from now on fail with ERR_UNAVAILABLE; those in progress complete; then this is done, with 0.
 * The store may be used until then, but not in `done`. */
void store_close(struct store *s, struct store_close *c);

/* The name of the backend, "sqlite". */
const char *store_name(const struct store *s);

/* --- backends --- */

/* An SQLite file, for one process at a time. Its directory must exist. A new file gets mode 0600; a file that other users can
 * read is refused, as is one that is damaged, in use, of another program or of a newer Hutch. A refused file is not changed.
 * Blocks: for use at the start of the program. See docs/internals/store.md. */
int store_sqlite_open(struct net_loop *loop, const char *path, struct store **ret, struct err *e)
        must_check;

#endif
