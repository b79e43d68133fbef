/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mount_identity.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/in_root.h"

int mount_identity_of(int fd, struct mount_identity *ret)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        *ret = (struct mount_identity){ .dev = st.st_dev, .ino = st.st_ino };
        return 0;
}

void mount_identity_write(struct buf *b, const struct mount_identity *m, struct str path)
{
        buf_addf(b, "%llu:%llu:", (unsigned long long) m->dev, (unsigned long long) m->ino);
        buf_add_str(b, path);
}

int mount_identity_check(struct str text)
{
        scoped(fd_closep) int root = -EBADF, fd = -EBADF;
        struct mount_identity expected, found = { 0 };
        struct str dev, ino;
        struct statx stx;
        char path[PATH_MAX];
        int r;

        if (!str_split(&text, ':', &dev) || !str_split(&text, ':', &ino) || !text.p
            || parse_u64(dev, &expected.dev) < 0 || parse_u64(ino, &expected.ino) < 0
            || !str_starts_with(text, STR("/")) || text.n >= PATH_MAX || memchr(text.p, 0, text.n))
                return -EINVAL;
        memcpy(path, text.p, text.n);
        path[text.n] = '\0';
        root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
                return -errno;
        r = in_root_open(root, path, &(struct in_root_how){ .flags = O_PATH, .no_symlinks = true },
                         &fd);
        if (r == 0)
                r = mount_identity_of(fd, &found);
        if (r < 0)
                return r;
        if (found.dev != expected.dev || found.ino != expected.ino)
                return -ESTALE;
        if (statx(fd, "", AT_EMPTY_PATH, 0, &stx) < 0)
                return -errno;
        if (!(stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT)) /* kernels before 5.8 */
                return -EOPNOTSUPP;
        return stx.stx_attributes & STATX_ATTR_MOUNT_ROOT ? 0 : -ENOTUNIQ;
}
