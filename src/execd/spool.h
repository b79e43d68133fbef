/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_SPOOL_H
#define HUTCH_EXECD_SPOOL_H

/*
 * A spool keeps the last N bytes of an output stream in a file.
 *
 * Every byte has an offset, counted from the first byte ever written. When more than `max` bytes were
 * written, the oldest are dropped and spool_start grows. The file is a ring of at most `max` bytes and
 * has no name: no other process can open it, and it vanishes with the agent however that ends.
 *
 * A full disk does not stop the program that writes: bytes that cannot be written count as dropped, and
 * so do all bytes before them.
 */

#include "base/compiler.h"
#include "base/list.h"
#include "base/str.h"
#include "http/req.h"
#include "net/loop.h"

struct spool;

/* Creates the file in dir. */
int spool_new(struct net_loop *l, const char *dir, uint64_t max, struct spool **ret) must_check;

/* The writer's reference; responses have their own. Takes NULL. */
void spool_unref(struct spool *s);

void spool_add(struct spool *s, struct str bytes);

/* No more bytes that matter to readers will come; readers are notified. */
void spool_finish(struct spool *s);
bool spool_finished(const struct spool *s);

uint64_t spool_start(const struct spool *s); /* offset of the oldest byte kept */
uint64_t spool_end(const struct spool *s);   /* offset behind the newest byte */

/* Reads up to n bytes from an offset within [start, end); fewer at the seam of the ring. */
ssize_t spool_read(const struct spool *s, uint64_t at, char *p, size_t n) must_check;

/* --- readers that wait --- */

struct spool_reader {
        struct list _node;
        struct net_task task;
        struct spool *spool;
};

/* `more` runs from the loop, with the task of the reader, when bytes were added or the spool finished. */
void spool_wait(struct spool *s, struct spool_reader *r, net_task_fn *more);
void spool_unwait(struct spool_reader *r);

/* --- as an HTTP response --- */

/*
 * Replies with plain text from a byte offset on (?cursor=N, 0 if absent or invalid).
 *
 * The header EXECD-COMMANDS-TAIL-CURSOR is the offset behind the last byte sent: the cursor of the next
 * request. If bytes from the cursor on were dropped, the response begins with the oldest byte kept and
 * EXECD-COMMANDS-DROPPED has the number of missing bytes.
 *
 * With ?follow=true the response continues until the spool is finished and has no TAIL-CURSOR header. A
 * reader that the ring overtakes gets a line with the number of dropped bytes and continues with the
 * oldest byte kept; without follow, where a length was promised, the response is aborted.
 */
void spool_reply(struct http_req *req, struct spool *s);

#endif
