/* SPDX-License-Identifier: Apache-2.0 */
#include "os/disk.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "os/virtual_file.h"

#define NUMBER_MAX 1048575U /* of a minor; a major has fewer */

static int parse_number(struct str s, dev_t *ret)
{
        uint64_t major_number, minor_number;
        struct str part;

        if (s.n > 0 && s.p[s.n - 1] == '\n')
                s.n--;
        if (!str_split(&s, ':', &part) || parse_u64_max(part, NUMBER_MAX, &major_number) < 0
            || parse_u64_max(s, NUMBER_MAX, &minor_number) < 0 || major_number == 0)
                return -EPROTO;
        *ret = makedev((unsigned) major_number, (unsigned) minor_number);
        return 0;
}

/* In sysfs a partition is a directory in that of its disk, and has a file "partition". */
int disk_of_number(const char *root, dev_t number, dev_t *ret)
{
        char path[PATH_MAX], text[32];
        ssize_t size;
        int n;

        if (major(number) == 0)
                return -ENODEV;
        n = snprintf(path, sizeof(path), "%s/sys/dev/block/%u:%u/partition", root, major(number),
                     minor(number));
        if (n < 0 || (size_t) n >= sizeof(path))
                return -ENAMETOOLONG;
        if (access(path, F_OK) < 0) {
                if (errno != ENOENT)
                        return -errno;
                *ret = number;
                return 0;
        }
        (void) snprintf(path, sizeof(path), "%s/sys/dev/block/%u:%u/../dev", root, major(number),
                        minor(number));
        size = virtual_file_read(path, text, sizeof(text));
        return size < 0 ? (int) size : parse_number(str_of(text, (size_t) size), ret);
}

int disk_of(const char *root, int dirfd, dev_t *ret)
{
        struct stat st;

        return fstat(dirfd, &st) < 0 ? -errno : disk_of_number(root, st.st_dev, ret);
}
