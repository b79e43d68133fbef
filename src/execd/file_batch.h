/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_FILE_BATCH_H
#define HUTCH_EXECD_FILE_BATCH_H

/*
 * A request about several files: one item for each path, processed in slices of a few milliseconds per
 * loop turn, so that other requests are served in between.
 *
 *         static const struct file_batch_ops ops = { .steps = { check, change },
 *                                                    .end = file_batch_reply_empty };
 *         file_batch_start(req, FILE_BATCH_QUERY, &ops, NULL);
 *
 * The items come from the query (?path=a&path=b) or from the body: a map from paths to objects, or an
 * array of objects.
 *
 * Each step runs for every item before the next step begins, so errors that a check can find are found
 * before anything is changed. After the last step of the last item, `end` replies. A step that fails has
 * replied and ends the batch; a client that disconnects ends it, too.
 */

#include "base/json.h"
#include "http/req.h"
#include "net/loop.h"
#include "os/file.h"

#define FILE_BATCH_STEPS_MAX 2

enum file_batch_source {
        FILE_BATCH_QUERY, /* items have `given` */
        FILE_BATCH_MAP,   /* `given` and `value` */
        FILE_BATCH_ARRAY, /* `value` */
};

enum file_batch_progress {
        FILE_BATCH_NEXT, /* this item is done */
        FILE_BATCH_MORE, /* call the step again for this item */
};

struct file_item {
        struct str given;        /* as the client wrote it */
        const json_t *value;     /* lives as long as the batch */
        struct str path;         /* by file_item_resolve */
        struct file_attrs attrs; /* by file_item_permission */
};

struct file_batch;

struct file_batch_ops {
        /* enum file_batch_progress, or negative: the step has replied. */
        int (*steps[FILE_BATCH_STEPS_MAX])(struct file_batch *fb, struct file_item *item);
        void (*end)(struct file_batch *fb);
        void (*release)(struct file_batch *fb); /* last call; frees what `data` owns; may be NULL */
};

/* Lives in the request's arena. */
struct file_batch {
        struct http_req *req;
        struct file_item *items;
        struct buf out; /* a response that grows item by item */
        void *data;     /* the handler's, in the request's arena */

        const struct file_batch_ops *_ops;
        json_t *_doc;
        struct net_task _task;
        size_t _n, _step, _i;
};

/* Replies 400 if the body or the query does not have that form. The first slice runs from inside: a
 * small batch has ended when this returns. Calls users_refresh. */
void file_batch_start(struct http_req *req, enum file_batch_source source,
                      const struct file_batch_ops *ops, void *data);

/* For `end`: 200 without content, or with `out`, a JSON object whose last '}' is still missing. */
void file_batch_reply_empty(struct file_batch *fb);
void file_batch_reply_object(struct file_batch *fb);

/* Begins a member of the object in `out`: '{' or ',', the name, ':'. */
void file_batch_add_key(struct file_batch *fb, struct str name);

/* For steps; negative: has replied. */
int file_item_resolve(struct file_batch *fb, struct file_item *item) must_check;
int file_item_permission(struct file_batch *fb, struct file_item *item) must_check;

/* Decodes the value by a table, into any arena. Negative: has replied. */
int file_item_decode(struct file_batch *fb, const struct file_item *item,
                     const struct json_field *fields, struct arena *a, void *ret) must_check;

#endif
