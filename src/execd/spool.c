/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

struct spool {
        unsigned refs;
        struct net_loop *loop;
        int fd;
        uint64_t max;
        uint64_t start, end;
        bool finished;
        struct list readers;
};

/* Not every filesystem has nameless files. */
static int open_nameless(const char *dir)
{
        char path[4096];
        int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
                return fd < 0 ? -errno : fd;
        if (snprintf(path, sizeof(path), "%s/.hutch-XXXXXX", dir) >= (int) sizeof(path))
                return -ENAMETOOLONG;
        fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        (void) unlink(path);
        return fd;
}

int spool_new(struct net_loop *l, const char *dir, uint64_t max, struct spool **ret)
{
        int fd = open_nameless(dir);
        struct spool *s;

        if (fd < 0)
                return fd;
        s = xnew(struct spool);
        *s = (struct spool){ .refs = 1, .loop = l, .fd = fd, .max = max };
        list_init(&s->readers);
        *ret = s;
        return 0;
}

struct spool *spool_ref(struct spool *s)
{
        s->refs++;
        return s;
}

void spool_unref(struct spool *s)
{
        if (!s || --s->refs > 0)
                return;
        ASSERT(list_empty(&s->readers));
        (void) fd_close(s->fd);
        free(s);
}

static void notify_readers(struct spool *s)
{
        list_for_each (n, &s->readers)
                net_task_queue(s->loop, &container_of(n, struct spool_reader, _node)->_task);
}

/* What fails here is lost: the offsets go on, so that a reader never mistakes old bytes in the ring
 * for these. */
void spool_add(struct spool *s, struct str bytes)
{
        while (bytes.n > 0) {
                uint64_t at = s->end % s->max;
                size_t n = (size_t) MIN_OF((uint64_t) bytes.n, s->max - at);
                ssize_t written = pwrite(s->fd, bytes.p, n, (off_t) at);

                if (written <= 0) {
                        s->start = s->end + n;
                        written = (ssize_t) n;
                }
                s->end += (uint64_t) written;
                bytes = str_skip(bytes, (size_t) written);
        }
        if (s->end - s->start > s->max)
                s->start = s->end - s->max;
        notify_readers(s);
}

void spool_finish(struct spool *s)
{
        s->finished = true;
        notify_readers(s);
}

bool spool_finished(const struct spool *s)
{
        return s->finished;
}

uint64_t spool_start(const struct spool *s)
{
        return s->start;
}

uint64_t spool_end(const struct spool *s)
{
        return s->end;
}

ssize_t spool_read(const struct spool *s, uint64_t at, char *p, size_t n)
{
        uint64_t pos = at % s->max;
        ssize_t got;

        ASSERT(at >= s->start && at < s->end);
        n = (size_t) MIN_OF((uint64_t) n, MIN_OF(s->end - at, s->max - pos));
        got = pread(s->fd, p, n, (off_t) pos);
        return got < 0 ? -errno : got == 0 ? -EIO : got;
}

static void reader_task(struct net_task *t)
{
        struct spool_reader *r = container_of(t, struct spool_reader, _task);

        r->more(r);
}

void spool_wait(struct spool *s, struct spool_reader *r)
{
        r->spool = s;
        net_task_init(&r->_task, reader_task);
        list_append(&s->readers, &r->_node);
}

void spool_unwait(struct spool_reader *r)
{
        if (!r->spool)
                return;
        list_remove(&r->_node);
        net_task_cancel(&r->_task);
        r->spool = NULL;
}
