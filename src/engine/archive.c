/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/archive.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/names.h"
#include "os/fd.h"
#include "os/file.h"

#define BLOCK 512

/* POSIX.1-1988, "ustar". */
struct tar_head {
        char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
        char type, link[100], magic[6], version[2], owner[32], group[32], major[8], minor[8];
        char prefix[155], pad[12];
};
static_assert(sizeof(struct tar_head) == BLOCK, "a block");

static void add_head(struct buf *b, const char *name, unsigned mode, uint64_t size)
{
        struct tar_head h = { .type = size ? '0' : '5', .magic = "ustar", .version = { '0', '0' } };
        const unsigned char *p = (const unsigned char *) &h;
        unsigned sum = 0;

        (void) snprintf(h.name, sizeof(h.name), "%s", name);
        (void) snprintf(h.mode, sizeof(h.mode), "%07o", mode & 07777U);
        (void) snprintf(h.uid, sizeof(h.uid), "%07o", 0U);
        (void) snprintf(h.gid, sizeof(h.gid), "%07o", 0U);
        (void) snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long) size);
        (void) snprintf(h.mtime, sizeof(h.mtime), "%011o", 0U);
        memset(h.checksum, ' ', sizeof(h.checksum));
        for (size_t i = 0; i < sizeof(h); i++)
                sum += p[i];
        (void) snprintf(h.checksum, sizeof(h.checksum), "%06o", sum);
        buf_add(b, &h, sizeof(h));
}

static void add_zeros(struct buf *b, size_t n)
{
        static const char zeros[2 * BLOCK];

        buf_add(b, zeros, n);
}

static int add_content(struct buf *b, int fd, size_t size)
{
        while (size > 0) {
                char *p = buf_reserve(b, size);
                ssize_t n = p ? read(fd, p, size) : -1;

                if (n <= 0)
                        return p && n < 0 ? -errno : -EIO;
                buf_advance(b, (size_t) n);
                size -= (size_t) n;
        }
        return 0;
}

void archive_add(struct buf *b, const char *name, struct str content)
{
        ASSERT(content.n > 0);
        add_head(b, name, 0644, content.n);
        buf_add_str(b, content);
        add_zeros(b, (BLOCK - content.n % BLOCK) % BLOCK);
}

void archive_end(struct buf *b)
{
        add_zeros(b, 2 * BLOCK);
}

/* Names in an archive are relative to where it is unpacked. */
int archive_write(struct buf *b, const char *agent)
{
        scoped(fd_closep) int fd = -EBADF;
        struct stat st;
        int r = file_open_read(agent, &st, &fd);

        if (r < 0)
                return r;
        if (st.st_size <= 0 || (uint64_t) st.st_size > ARCHIVE_MAX)
                return -EFBIG;
        add_head(b, ".hutch/", 0755, 0);
        add_head(b, &(INSIDE_RUN "/")[1], 01777, 0);
        add_head(b, &(INSIDE_AGENT)[1], 0755, (uint64_t) st.st_size);
        r = add_content(b, fd, (size_t) st.st_size);
        add_zeros(b, (BLOCK - (size_t) st.st_size % BLOCK) % BLOCK);
        archive_end(b);
        return r;
}
