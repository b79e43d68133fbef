/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>

#include "base/base.h"
#include "base/clock.h"
#include "store/nats/bucket.h"
#include "store/nats_protocol.h"

/*
 * The server lists the subjects of a stream, up to 100,000 per reply, in no useful order. The first ones after the cursor are
 * kept in a heap, and then their values are read. So the memory of a page does not grow with the bucket, but its time does.
 */

#define KEYS_MAX (STORE_SCAN_MAX + 1) /* one more: whether there is more */

struct key {
        char *p;
        size_t n;
};

/* A heap with the largest on top: the smallest keys of all that were offered. */
struct keys {
        struct key items[KEYS_MAX];
        size_t n;
        bool more; /* some did not fit */
};

static struct str view(const struct key *k)
{
        return str_of(k->p, k->n);
}

static bool less(const struct keys *k, size_t i, size_t j)
{
        return str_cmp(view(&k->items[i]), view(&k->items[j])) < 0;
}

static void swap(struct keys *k, size_t i, size_t j)
{
        struct key t = k->items[i];

        k->items[i] = k->items[j];
        k->items[j] = t;
}

static void sink(struct keys *k, size_t i)
{
        for (;;) {
                size_t child = 2 * i + 1;

                if (child + 1 < k->n && less(k, child, child + 1))
                        child++;
                if (child >= k->n || !less(k, i, child))
                        return;
                swap(k, i, child);
                i = child;
        }
}

static void set_key(struct key *k, struct str key)
{
        free(k->p);
        k->p = xcalloc(1, key.n);
        k->n = key.n;
        memcpy(k->p, key.p, key.n);
}

static void offer(struct keys *k, struct str key)
{
        size_t i = k->n;

        if (i < KEYS_MAX) {
                set_key(&k->items[k->n++], key);
                for (; i > 0 && less(k, (i - 1) / 2, i); i = (i - 1) / 2)
                        swap(k, i, (i - 1) / 2);
                return;
        }
        k->more = true;
        if (str_cmp(key, view(&k->items[0])) >= 0)
                return;
        set_key(&k->items[0], key);
        sink(k, 0);
}

static int compare(const void *a, const void *b)
{
        return str_cmp(view(a), view(b));
}

/* --- listing keys --- */

struct listing {
        struct bucket *bucket;
        struct str prefix, after; /* only keys after it */
        struct keys *keys;
        size_t seen; /* subjects, of all replies */
};

/* {"state": {"subjects": {"$KV.hutch.a": 1, …}}, "total": 3, …} */
static int take_reply(struct listing *l, const json_t *reply, json_int_t *ret_total, struct err *e)
{
        json_t *subjects = json_object_get(json_object_get(reply, "state"), "subjects");
        const json_t *wrong = json_object_get(reply, "error");
        struct str begin = str_from(l->bucket->subjects);
        char storage[NATS_KEY_MAX];
        const char *name;
        json_t *count;

        if (wrong)
                return bucket__failed(l->bucket, NATS_ERR,
                                      (jsErrCode) json_integer_value(
                                              json_object_get(wrong, "err_code")),
                                      false, e);
        json_object_foreach(subjects, name, count)
        {
                struct str subject = str_from(name), key = { storage, 0 };

                l->seen++;
                if (!str_starts_with(subject, begin))
                        continue;
                subject = str_skip(subject, begin.n);
                if (subject.n > sizeof(storage) || nats_key_decode(subject, storage, &key.n) < 0)
                        continue; /* of another program */
                if (key.n <= STORE_KEY_MAX && str_starts_with(key, l->prefix)
                    && (l->after.n == 0 || str_cmp(key, l->after) > 0))
                        offer(l->keys, key);
        }
        *ret_total = json_integer_value(json_object_get(reply, "total"));
        return 0;
}

static int list_subjects(struct listing *l, json_int_t *ret_total, struct err *e)
{
        char api[sizeof(l->bucket->stream) + 32], text[BUCKET_SUBJECT_MAX + 128];
        struct bucket *b = l->bucket;
        natsMsg *msg = NULL;
        json_t *reply;
        struct buf request;
        natsStatus s;
        int r;

        (void) snprintf(api, sizeof(api), "$JS.API.STREAM.INFO.%s", b->stream);
        buf_init_fixed(&request, text, sizeof(text));
        buf_addf(&request, "{\"subjects_filter\":\"%s", b->subjects);
        nats_key_wildcard(&request, l->prefix);
        buf_addf(&request, "\",\"offset\":%zu}", l->seen);
        ASSERT(!buf_failed(&request));
        s = natsConnection_RequestString(&msg, b->connection, api, text, b->settings->wait_ms);
        if (s != NATS_OK)
                return bucket__failed(b, s, 0, false, e);
        reply = json_loadb(natsMsg_GetData(msg), (size_t) natsMsg_GetDataLength(msg), 0, NULL);
        natsMsg_Destroy(msg);
        if (!json_is_object(reply))
                r = err_set(e, ERR_UNAVAILABLE, "the list of keys of NATS is malformed");
        else
                r = take_reply(l, reply, ret_total, e);
        json_decref(reply);
        return r;
}

/* --- reading values --- */

/* An entry that does not fit is the first of the next page. */
static int add_value(struct bucket *b, struct bucket_page *page, struct str key,
                     const struct bucket_value *v, struct err *e)
{
        size_t used = page->entries->n - page->n * NATS_ENTRY_COST;
        char subject[BUCKET_SUBJECT_MAX + 1];
        usec_t now = clock_wall(&clock_system);

        if (v->marker && now > v->when && now - v->when > bucket__marker_for(b))
                bucket__clear(b, bucket__subject(b, key, subject), v->version);
        if (v->marker || v->version == 0)
                return 0;
        page->more = page->n == page->limit || used + key.n + v->n > STORE_SCAN_BYTES_MAX
                     || (page->n > 0 && clock_mono(&clock_system) >= page->deadline);
        if (page->more)
                return 0;
        nats_entry_add(page->entries, (struct store_entry){ .key = key,
                                                            .value = { v->data, v->n },
                                                            .version = v->version });
        page->n++;
        return buf_failed(page->entries) ? err_set(e, ERR_EXHAUSTED, "no memory for a page") : 0;
}

static int add_some(struct bucket *b, struct bucket_page *page, const struct key *keys, size_t n,
                    struct err *e)
{
        struct bucket_value values[BUCKET_READ_MAX];
        struct str views[BUCKET_READ_MAX];
        int r;

        for (size_t i = 0; i < n; i++)
                views[i] = view(&keys[i]);
        r = bucket__read(b, views, n, values, e);
        for (size_t i = 0; i < n; i++) {
                if (r == 0 && !page->more)
                        r = add_value(b, page, views[i], &values[i], e);
                bucket__value_done(&values[i]);
        }
        return r;
}

/* Markers are keys as well: if they leave the page incomplete, the next keys are listed. */
static int fill(struct bucket *b, struct bucket_page *page, struct keys *keys, struct err *e)
{
        char cursor[STORE_KEY_MAX];
        struct listing l = {
                .bucket = b, .prefix = page->prefix, .after = page->after, .keys = keys
        };
        json_int_t total = 0;
        size_t before;
        int r = 0;

        do {
                l.seen = 0;
                keys->n = 0;
                keys->more = false;
                do {
                        before = l.seen;
                        r = list_subjects(&l, &total, e);
                } while (r == 0 && l.seen > before && l.seen < (size_t) MAX_OF(total, 0));
                qsort(keys->items, keys->n, sizeof(keys->items[0]), compare);
                for (size_t i = 0; i < keys->n && r == 0 && !page->more; i += BUCKET_READ_MAX)
                        r = add_some(b, page, &keys->items[i], MIN_OF(keys->n - i, BUCKET_READ_MAX),
                                     e);
                if (keys->n == 0)
                        break;
                l.after = str_of(cursor, keys->items[keys->n - 1].n);
                memcpy(cursor, keys->items[keys->n - 1].p, l.after.n);
        } while (r == 0 && keys->more && !page->more);
        return r;
}

int bucket_scan(struct bucket *b, struct bucket_page *page, struct err *e)
{
        struct keys *keys = xnew(struct keys);
        int r;

        page->more = false;
        page->n = 0;
        (void) pthread_mutex_lock(&b->scanning);
        page->deadline = clock_mono(&clock_system) + b->settings->wait_ms * USEC_PER_MSEC / 4;
        r = fill(b, page, keys, e);
        (void) pthread_mutex_unlock(&b->scanning);
        for (size_t i = 0; i < KEYS_MAX; i++)
                free(keys->items[i].p);
        free(keys);
        return r;
}
