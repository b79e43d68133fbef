/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_SPOOL_H
#define HUTCH_EXECD_SPOOL_H

/*
 * Output that is kept: the last N bytes of a stream, in a file.
 *
 * Every byte has an offset, counted from the first one ever written; when there are more than the
 * spool keeps, the oldest are dropped and spool_start grows. The file is a ring of at most `max`
 * bytes without a name: nobody else can open it, and it is gone with us, whatever happens.
 *
 * A full disk does not stop the writer's program: what could not be written is lost, as if it had
 * been dropped, and so is what was before it.
 */

#include "base/compiler.h"
#include "base/list.h"
#include "base/str.h"
#include "net/loop.h"

struct spool;

/* Who waits for more. */
struct spool_reader {
        struct list _node;
        void (*more)(struct spool_reader *r); /* from the loop; something was added, or closed */
        struct net_task _task;
        struct spool *spool;
};

/* A file below dir. */
int spool_new(struct net_loop *l, const char *dir, uint64_t max, struct spool **ret) must_check;

/* Shared by who writes and who reads. unref takes NULL. */
struct spool *spool_ref(struct spool *s);
void spool_unref(struct spool *s);

void spool_add(struct spool *s, struct str bytes);

/* No more will come; readers are told. */
void spool_finish(struct spool *s);
bool spool_finished(const struct spool *s);

uint64_t spool_start(const struct spool *s); /* offset of the oldest byte kept */
uint64_t spool_end(const struct spool *s);   /* and behind the newest */

/* Up to n bytes from an offset within [start, end); fewer at the ring's seam. Negative errno. */
ssize_t spool_read(const struct spool *s, uint64_t at, char *p, size_t n) must_check;

/* Calls r->more when something is added. */
void spool_wait(struct spool *s, struct spool_reader *r);
void spool_unwait(struct spool_reader *r);

#endif
