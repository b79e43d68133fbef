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

/* In sysfs a partition is a directory in that of its disk, and has a file "partition". */
int disk_of_number(const char *root, dev_t number, dev_t *ret)
{
        uint64_t major_number, minor_number;
        char path[PATH_MAX], text[32];
        struct str rest, first;
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
        if (size < 0)
                return (int) size;
        rest = str_of(text, (size_t) size);
        if (str_ends_with(rest, STR("\n")))
                rest.n--;
        if (!str_split(&rest, ':', &first) || parse_u64_max(first, NUMBER_MAX, &major_number) < 0
            || parse_u64_max(rest, NUMBER_MAX, &minor_number) < 0 || major_number == 0)
                return -EPROTO;
        *ret = makedev((unsigned) major_number, (unsigned) minor_number);
        return 0;
}

int disk_of(const char *root, int dirfd, dev_t *ret)
{
        struct stat st;

        return fstat(dirfd, &st) < 0 ? -errno : disk_of_number(root, st.st_dev, ret);
}
