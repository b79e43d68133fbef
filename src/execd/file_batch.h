/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_FILE_BATCH_H
#define HUTCH_EXECD_FILE_BATCH_H

/*
 * A request about several files, as a batch (execd/batch.h): one item for each path.
 *
 * The items come from the query (?path=a&path=b), or from the body: a map from paths to objects, or
 * an array of objects. Handlers give a table of steps and start it in one line:
 *
 *         file_batch_start(req, FILE_BATCH_QUERY, &ops, NULL);
 */

#include "base/json.h"
#include "execd/batch.h"
#include "os/file.h"

enum file_batch_source {
        FILE_BATCH_QUERY, /* items have `given` */
        FILE_BATCH_MAP,   /* `given` and `value` */
        FILE_BATCH_ARRAY, /* `value` */
};

struct file_item {
        struct str given;        /* as the client wrote it */
        const json_t *value;     /* lives as long as the batch */
        struct str path;         /* by file_item_resolve */
        struct file_attrs attrs; /* by file_item_permission */
};

struct file_batch {
        struct batch batch;
        struct file_item *items;
        struct buf out; /* an answer that grows item by item */
        void *data;     /* the handler's; lives in the request's arena */
        json_t *_doc;
};

/* Answers 400 by itself if the body or the query is not of that form. Also reads the users anew if
 * need be. */
void file_batch_start(struct http_req *req, enum file_batch_source source,
                      const struct batch_ops *ops, void *data);

static inline struct file_batch *file_batch_of(struct batch *b)
{
        return container_of(b, struct file_batch, batch);
}

/* What ops->release must call, or be. */
void file_batch_release(struct batch *b);

/* An `end`: 200 without content. */
void file_batch_reply_empty(struct batch *b);

/* An `end`: 200 with what is in `out`. */
void file_batch_reply_out(struct batch *b);

/* Both: 0, or negative: answered. */
int file_item_resolve(struct http_req *req, struct file_item *item) must_check;
int file_item_permission(struct http_req *req, struct file_item *item) must_check;

/* The value by a table, into any arena. 0, or negative: answered. */
int file_item_decode(struct http_req *req, const struct file_item *item,
                     const struct json_field *fields, struct arena *a, void *ret) must_check;

#endif
