/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_NATS_BUCKET_H
#define HUTCH_STORE_NATS_BUCKET_H

/*
 * The calls of a store on a NATS bucket, as blocking functions.
 *
 * A bucket is a stream, KV_<bucket>, of messages whose subjects are $KV.<bucket>.<key>: the last message of a subject is the
 * value, its sequence number in the stream the version. The expected version of a write is a header of its message, which the
 * server compares. A removal is a message, too: a marker without a value. Its number is greater than the value's, so a write
 * that expects the old one fails. Sequence numbers of a stream never repeat.
 *
 * Markers are purged ten minutes later, not at once: a server that is killed could come back with the value and without the
 * marker, because it persists removals late (its sync_interval is two minutes). So there is a list of our own markers, and scans
 * purge old ones that they see.
 *
 * All functions may be called from several threads. They return 0, or a code of store/store.h with its err. A lost connection
 * is reported to `lost`, from any thread, which does not return.
 */

#include <nats/nats.h>
#include <pthread.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "store/nats/settings.h"
#include "store/nats_key.h"
#include "store/store.h"

#define BUCKET_OPERATION   "KV-Operation" /* a header that only markers have */
#define BUCKET_MARKERS_MAX 65536U         /* remembered; further ones are left to scans */

#define BUCKET_SUBJECT_MAX (80 + NATS_KEY_MAX)

struct bucket {
        const struct nats_settings *settings;
        void (*lost)(struct bucket *b, const char *why);

        natsConnection *connection;
        jsCtx *js;
        int64_t payload_max;
        char stream[80];
        char subjects[80]; /* the prefix of subjects */

        pthread_mutex_t scanning; /* one at a time: a list of keys may be large */
        pthread_mutex_t lock;     /* of the markers */
        pthread_cond_t marked;
        struct list markers; /* oldest first */
        size_t n_markers;
};

/* Connects, and creates or checks the bucket. After a failure nothing has to be undone. */
int bucket_open(struct bucket *b, const struct nats_settings *settings,
                void (*lost)(struct bucket *b, const char *why), struct err *e) must_check;

/* The value is appended. */
int bucket_get(struct bucket *b, struct str key, struct buf *value, uint64_t *ret_version,
               struct err *e) must_check;

struct bucket_write {
        struct str key, value;
        uint64_t expected; /* of cas */
        uint64_t version;  /* result */
};

int bucket_put(struct bucket *b, struct bucket_write *w, struct err *e) must_check;
int bucket_cas(struct bucket *b, struct bucket_write *w, struct err *e) must_check;
int bucket_remove(struct bucket *b, struct str key, uint64_t expected, struct err *e) must_check;

/* Entries of a page are appended (nats_entry_add). A page also ends when it has taken a quarter of the request timeout. */
struct bucket_page {
        struct str prefix, after;
        unsigned limit;
        struct buf *entries;
        unsigned n; /* results */
        bool more;
        usec_t deadline;
};

int bucket_scan(struct bucket *b, struct bucket_page *page, struct err *e) must_check;

/* Purges our markers when they are old enough; for a thread of its own. */
never_returns void bucket_sweep(struct bucket *b);

/* --- internal --- */

/* The last messages of several keys: all requests are sent before the first reply is awaited. */
#define BUCKET_READ_MAX 16U

struct bucket_value {
        uint64_t version; /* 0: none */
        bool marker;
        usec_t when; /* wall time of the write */
        char *data;
        size_t n;
};

void bucket__value_done(struct bucket_value *v);

/* The caller frees each of `ret`, also after a failure. */
int bucket__read(struct bucket *b, const struct str *keys, size_t n, struct bucket_value *ret,
                 struct err *e) must_check;

/* How long markers are kept. */
usec_t bucket__marker_for(const struct bucket *b);

/* Purges a marker, and nothing that came later. */
void bucket__clear(struct bucket *b, const char *subject, uint64_t version);

/* Maps an error of the library or the server. Does not return if the connection is lost. */
int bucket__failed(struct bucket *b, natsStatus s, jsErrCode code, bool writing, struct err *e);

/* The library's message about its last failure in this thread. */
const char *bucket__reason(natsStatus s);

/* The subject of a key. */
const char *bucket__subject(const struct bucket *b, struct str key,
                            char ret[static BUCKET_SUBJECT_MAX + 1]);

#endif
