/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_NATS_BUCKET_H
#define HUTCH_STORE_NATS_BUCKET_H

/*
 * A store's calls on a bucket of NATS, by functions that wait.
 *
 * A bucket is a stream, KV_<bucket>, of messages whose subjects are $KV.<bucket>.<key>: the last message of a subject is
 * the value, its sequence number in the stream the version. Whether a write expects a version is a header of its
 * message, and the server's to compare. A removal is a message, too, a marker without a value; its number is
 * greater than the value's, so who expects the old one loses. Numbers of a stream never come back.
 *
 * Markers are removed ten minutes later, and not at once: a server that is killed could come back with the value and without
 * the marker, because it notes removals of messages late (its sync_interval is two minutes). So there is a list of
 * our own markers, and scans clear away the old ones that they meet.
 *
 * All functions may be called from several threads. They return 0, or a code of store/store.h with its err. A connection
 * that is lost is told to `lost`, from whatever thread, which does not return.
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
#define BUCKET_MARKERS_MAX 65536U         /* noted at a time; the others are left to scans */

#define BUCKET_SUBJECT_MAX (80 + NATS_KEY_MAX)

struct bucket {
        const struct nats_settings *settings;
        void (*lost)(struct bucket *b, const char *why);

        natsConnection *connection;
        jsCtx *js;
        int64_t payload_max;
        char stream[80];
        char subjects[80]; /* what subjects begin with */

        pthread_mutex_t scanning; /* one at a time: a list of keys may be large */
        pthread_mutex_t lock;     /* of the markers */
        pthread_cond_t marked;
        struct list markers; /* oldest first */
        size_t n_markers;
};

/* Connects, and makes or checks the bucket. What is wrong is in the err; nothing has to be undone. */
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

/* The entries of a page are appended (nats_entry_add). A page also ends when it has taken a quarter of the time that its asker
 * waits. */
struct bucket_page {
        struct str prefix, after;
        unsigned limit;
        struct buf *entries;
        unsigned n; /* results */
        bool more;
        usec_t enough;
};

int bucket_scan(struct bucket *b, struct bucket_page *page, struct err *e) must_check;

/* Waits for markers of ours to be old enough, and removes them; for a thread of its own. */
never_returns void bucket_sweep(struct bucket *b);

/* --- inside --- */

/* The last message of a key: 0 if there is none. */
struct bucket_message {
        natsMsg *msg;
        uint64_t version;
        bool marker;
};

void bucket__message_done(struct bucket_message *m);
int bucket__last(struct bucket *b, struct str key, struct bucket_message *ret, struct err *e)
        must_check;

/* The same of several keys, asked together: they are all with the server before the first answer is waited for. */
#define BUCKET_READ_MAX 16U

struct bucket_value {
        uint64_t version; /* 0: none */
        bool marker;
        usec_t when; /* it was written */
        char *data;
        size_t n;
};

void bucket__value_done(struct bucket_value *v);

/* Each of `ret` is the caller's to end, also after a failure. */
int bucket__read(struct bucket *b, const struct str *keys, size_t n, struct bucket_value *ret,
                 struct err *e) must_check;

/* How long markers stay. */
usec_t bucket__marker_for(const struct bucket *b);

/* Removes a marker, and nothing that came later. */
void bucket__clear(struct bucket *b, const char *subject, uint64_t version);

/* What the library or the server say, as a code. Does not return if the connection is lost. */
int bucket__failed(struct bucket *b, natsStatus s, jsErrCode code, bool writing, struct err *e);

/* What the library says about its last failure in this thread, for people. */
const char *bucket__reason(natsStatus s);

/* A buffer of BUCKET_SUBJECT_MAX gets the subject of a key. */
const char *bucket__subject(const struct bucket *b, struct str key,
                            char ret[static BUCKET_SUBJECT_MAX + 1]);

#endif
