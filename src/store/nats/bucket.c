/* SPDX-License-Identifier: Apache-2.0 */
#include "store/nats/bucket.h"

#include <inttypes.h>

#include "base/base.h"
#include "base/clock.h"

#define REMOVED "DEL"

/* Retries if a key is created and removed between two reads. */
#define TRIES 16

/* --- errors --- */

static const struct {
        jsErrCode code;
        enum err_code means;
        const char *help;
} refusals[] = {
        { JSStreamWrongLastSequenceErr, ERR_CONFLICT,
          "the key does not have the expected version" },
        { JSStreamMessageExceedsMaximumErr, ERR_TOO_LARGE,
          "the bucket's max_msg_size is too small" },
        { JSStreamStoreFailedErr, ERR_EXHAUSTED,
          "NATS cannot store it; is its disk or the bucket full?" },
        { JSAccountResourcesExceededErr, ERR_EXHAUSTED,
          "NATS: the account's storage limit is reached" },
        { JSInsufficientResourcesErr, ERR_EXHAUSTED, "NATS has no room left for JetStream" },
        { JSStorageResourcesExceededErr, ERR_EXHAUSTED, "NATS has no room left for JetStream" },
        { JSStreamNotFoundErr, ERR_UNAVAILABLE,
          "the bucket was deleted; restart hutchd to create another" },
        { JSClusterNotAvailErr, ERR_UNAVAILABLE, "JetStream is unavailable; try again" },
        { JSNotEnabledErr, ERR_UNAVAILABLE, "NATS runs without JetStream; enable it" },
        { JSNotEnabledForAccountErr, ERR_UNAVAILABLE, "the account has no JetStream; enable it" },
};

/* Without the source location: "(conn.c:1905): Authorization Violation". */
const char *bucket__reason(natsStatus s)
{
        const char *text = nats_GetLastError(NULL);
        const char *end = text && *text == '(' ? strstr(text, "): ") : NULL;

        if (end)
                text = end + strlen("): ");
        return text && *text ? text : natsStatus_GetText(s);
}

static int refused(jsErrCode code, struct err *e)
{
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
                if (refusals[i].code == code)
                        return err_set(e, refusals[i].means, "%s", refusals[i].help);
        return err_set(e, ERR_UNAVAILABLE, "NATS refuses (%d): %s", (int) code,
                       bucket__reason(NATS_ERR));
}

int bucket__failed(struct bucket *b, natsStatus s, jsErrCode code, bool writing, struct err *e)
{
        if (code != 0)
                return refused(code, e);
        switch ((int) s) {
        case NATS_TIMEOUT:
                return err_set(e, ERR_UNAVAILABLE, "NATS: no reply in time%s",
                               writing ? "; it may have been written" : "");
        case NATS_NO_RESPONDERS:
                return err_set(
                        e, ERR_UNAVAILABLE,
                        "NATS: no server has the bucket; is JetStream enabled, and does the bucket exist?");
        case NATS_MAX_PAYLOAD:
                return err_set(e, ERR_TOO_LARGE,
                               "NATS takes messages of at most %" PRId64
                               " bytes, with their headers; raise its max_payload",
                               b->payload_max);
        case NATS_NO_MEMORY:
                return err_set(e, ERR_EXHAUSTED, "no memory");
        default:
                break;
        }
        b->lost(b, bucket__reason(s));
        return err_set(e, ERR_UNAVAILABLE, "NATS: %s", natsStatus_GetText(s));
}

static int conflict(struct err *e)
{
        return refused(JSStreamWrongLastSequenceErr, e);
}

/* --- reading --- */

const char *bucket__subject(const struct bucket *b, struct str key,
                            char ret[static BUCKET_SUBJECT_MAX + 1])
{
        struct buf text;

        buf_init_fixed(&text, ret, BUCKET_SUBJECT_MAX + 1);
        buf_add_str(&text, str_from(b->subjects));
        nats_key_encode(&text, key);
        ASSERT(!buf_failed(&text));
        return ret;
}

/* The last message of a key; version 0: there is none. */
struct bucket_message {
        natsMsg *msg;
        uint64_t version;
        bool marker;
};

static void message_done(struct bucket_message *m)
{
        natsMsg_Destroy(TAKE_PTR(m->msg));
}

/* From the leader. NATS' own clients read from any replica if the bucket allows it (allow_direct), which may be stale. */
static int last_message(struct bucket *b, struct str key, struct bucket_message *ret, struct err *e)
{
        char subject[BUCKET_SUBJECT_MAX + 1];
        const char *operation = NULL;
        jsErrCode code = 0;
        natsStatus s;

        *ret = (struct bucket_message){ 0 };
        s = js_GetLastMsg(&ret->msg, b->js, b->stream, bucket__subject(b, key, subject), NULL,
                          &code);
        if (s == NATS_NOT_FOUND && code == JSNoMessageFoundErr)
                return 0;
        if (s != NATS_OK)
                return bucket__failed(b, s, code, false, e);
        ret->version = natsMsg_GetSequence(ret->msg);
        ret->marker = natsMsgHeader_Get(ret->msg, BUCKET_OPERATION, &operation) == NATS_OK;
        return 0;
}

int bucket_get(struct bucket *b, struct str key, struct buf *value, uint64_t *ret_version,
               struct err *e)
{
        scoped(message_done) struct bucket_message m;
        int r = last_message(b, key, &m, e);
        int n;

        if (r < 0)
                return r;
        if (m.version == 0 || m.marker)
                return err_set(e, ERR_NOT_FOUND, "no such key");
        n = natsMsg_GetDataLength(m.msg);
        if (n < 0 || (size_t) n > STORE_VALUE_MAX)
                return err_set(e, ERR_TOO_LARGE, "the value has more than %zu bytes",
                               STORE_VALUE_MAX);
        buf_add(value, natsMsg_GetData(m.msg), (size_t) n);
        if (buf_failed(value))
                return err_set(e, ERR_EXHAUSTED, "no memory for a value of %d bytes", n);
        *ret_version = m.version;
        return 0;
}

/* --- writing --- */

struct message {
        const char *subject;
        struct str value;
        bool marker;
        uint64_t expected; /* STORE_ABSENT: no message at all; STORE_ANY */
};

/* No header more than is needed: they count as payload, of which a server takes 1 MiB by default. */
static int publish(struct bucket *b, const struct message *m, uint64_t *ret, struct err *e)
{
        jsPubAck *ack = NULL;
        jsErrCode code = 0;
        jsPubOptions o;
        natsMsg *msg = NULL;
        natsStatus s;

        /* The server reads it as a signed number; no sequence number is so large. */
        if (m->expected != STORE_ANY && m->expected > INT64_MAX)
                return conflict(e);
        (void) jsPubOptions_Init(&o);
        o.ExpectNoMessage = m->expected == STORE_ABSENT;
        if (m->expected != STORE_ANY)
                o.ExpectLastSubjectSeq = m->expected;
        s = natsMsg_Create(&msg, m->subject, NULL, m->value.n > 0 ? m->value.p : "",
                           (int) m->value.n);
        if (s == NATS_OK && m->marker)
                s = natsMsgHeader_Set(msg, BUCKET_OPERATION, REMOVED);
        if (s == NATS_OK)
                s = js_PublishMsg(&ack, b->js, msg, &o, &code);
        natsMsg_Destroy(msg);
        if (s != NATS_OK)
                return bucket__failed(b, s, code, true, e);
        *ret = ack->Sequence;
        jsPubAck_Destroy(ack);
        return 0;
}

int bucket_put(struct bucket *b, struct bucket_write *w, struct err *e)
{
        char subject[BUCKET_SUBJECT_MAX + 1];
        struct message m = { .subject = bucket__subject(b, w->key, subject),
                             .value = w->value,
                             .expected = STORE_ANY };

        return publish(b, &m, &w->version, e);
}

/* The version to expect for an absent key: that of its marker, or 0. A value is a conflict. */
static int expect_absent(struct bucket *b, struct str key, uint64_t *ret, struct err *e)
{
        scoped(message_done) struct bucket_message last;
        int r = last_message(b, key, &last, e);

        if (r < 0)
                return r;
        if (last.version != 0 && !last.marker)
                return conflict(e);
        *ret = last.version;
        return 0;
}

int bucket_cas(struct bucket *b, struct bucket_write *w, struct err *e)
{
        char subject[BUCKET_SUBJECT_MAX + 1];
        struct message m = { .subject = bucket__subject(b, w->key, subject),
                             .value = w->value,
                             .expected = w->expected };
        int r;

        if (w->expected == STORE_ANY) /* not a version */
                return conflict(e);
        for (int i = 0; i < TRIES; i++) {
                r = publish(b, &m, &w->version, e);
                if (w->expected != STORE_ABSENT || r != ERR_RETURN(ERR_CONFLICT))
                        return r;
                r = expect_absent(b, w->key, &m.expected, e);
                if (r < 0)
                        return r;
        }
        return err_set(e, ERR_UNAVAILABLE,
                       "the key is being created and removed all the time; try again");
}

/* --- markers --- */

struct marker {
        struct list node;
        uint64_t version;
        usec_t due;
        char subject[];
};

usec_t bucket__marker_for(const struct bucket *b)
{
        return b->settings->marker_ms * USEC_PER_MSEC;
}

void bucket__clear(struct bucket *b, const char *subject, uint64_t version)
{
        jsOptions o;

        (void) jsOptions_Init(&o);
        o.Wait = b->settings->wait_ms;
        o.Stream.Purge.Subject = subject;
        o.Stream.Purge.Sequence = version + 1;
        /* If it fails, a scan will find the marker. */
        (void) js_PurgeStream(b->js, b->stream, &o, NULL);
}

int bucket_remove(struct bucket *b, struct str key, uint64_t expected, struct err *e)
{
        char subject[BUCKET_SUBJECT_MAX + 1];
        struct message m = { .subject = bucket__subject(b, key, subject),
                             .marker = true,
                             .expected = expected };
        size_t size = strlen(subject) + 1;
        uint64_t version = 0;
        struct marker *mark;
        int r;

        if (expected == STORE_ABSENT)
                return conflict(e);
        if (expected == STORE_ANY) {
                r = expect_absent(b, key, &version, e);
                if (r == 0)
                        return 0; /* no marker is needed */
                if (r != ERR_RETURN(ERR_CONFLICT))
                        return r;
        }
        r = publish(b, &m, &version, e);
        if (r < 0)
                return r;
        mark = xcalloc(1, sizeof(*mark) + size);
        mark->version = version;
        mark->due = clock_mono(&clock_system) + bucket__marker_for(b);
        memcpy(mark->subject, subject, size);
        (void) pthread_mutex_lock(&b->lock);
        if (b->n_markers < BUCKET_MARKERS_MAX) {
                b->n_markers++;
                list_append(&b->markers, &TAKE_PTR(mark)->node);
                (void) pthread_cond_signal(&b->marked);
        }
        (void) pthread_mutex_unlock(&b->lock);
        free(mark);
        return 0;
}

/* The oldest one, once it is due. Our clock runs while the host is suspended; condition variables have no such clock:
 * after a suspend this is late by its length. */
static struct marker *await_marker(struct bucket *b)
{
        struct timespec at;
        struct list *first;
        struct marker *m;
        usec_t now, left;

        (void) pthread_mutex_lock(&b->lock);
        for (;;) {
                first = list_first(&b->markers);
                if (!first) {
                        (void) pthread_cond_wait(&b->marked, &b->lock);
                        continue;
                }
                m = container_of(first, struct marker, node);
                now = clock_mono(&clock_system);
                if (now >= m->due)
                        break;
                (void) clock_gettime(CLOCK_MONOTONIC, &at);
                left = m->due - now + (usec_t) at.tv_nsec / 1000 + 1;
                at.tv_sec += (time_t) (left / USEC_PER_SEC);
                at.tv_nsec = (long) (left % USEC_PER_SEC * 1000);
                (void) pthread_cond_clockwait(&b->marked, &b->lock, CLOCK_MONOTONIC, &at);
        }
        list_remove(&m->node);
        b->n_markers--;
        (void) pthread_mutex_unlock(&b->lock);
        return m;
}

never_returns void bucket_sweep(struct bucket *b)
{
        for (;;) {
                struct marker *m = await_marker(b);

                bucket__clear(b, m->subject, m->version);
                free(m);
        }
}
