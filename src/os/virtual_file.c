/* SPDX-License-Identifier: Apache-2.0 */
#include "os/virtual_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

#define STAT_MAX (16 * KiB) /* of memory.stat, the longest that is searched */

ssize_t virtual_file_read_at(int dirfd, const char *path, char *ret, size_t size)
{
        scoped(fd_closep) int fd =
                openat(dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;
        size_t n = 0;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        while (n < size - 1) {
                ssize_t got = read(fd, ret + n, size - 1 - n);

                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return -errno;
                if (got == 0)
                        break;
                n += (size_t) got;
        }
        ret[n] = '\0';
        return (ssize_t) n;
}

ssize_t virtual_file_read(const char *path, char *ret, size_t size)
{
        return virtual_file_read_at(AT_FDCWD, path, ret, size);
}

int virtual_file_number_at(int dirfd, const char *path, uint64_t *ret)
{
        char text[64];
        ssize_t n = virtual_file_read_at(dirfd, path, text, sizeof(text));

        if (n < 0)
                return (int) n;
        if (n > 0 && text[n - 1] == '\n')
                n--;
        return parse_u64(str_of(text, (size_t) n), ret);
}

int virtual_file_value(struct str text, struct str key, uint64_t *ret)
{
        struct str line;

        while (str_split(&text, '\n', &line)) {
                ssize_t end;

                if (!str_starts_with(line, key) || line.n == key.n)
                        continue;
                line = str_skip(line, key.n);
                if (line.p[0] != ' ' && line.p[0] != '\t')
                        continue; /* a longer word */
                line = str_trim(line);
                end = str_find(line, ' '); /* a unit may follow */
                return parse_u64(end < 0 ? line : str_of(line.p, (size_t) end), ret);
        }
        return -ENODATA;
}

int virtual_file_value_at(int dirfd, const char *path, struct str key, uint64_t *ret)
{
        char text[STAT_MAX];
        ssize_t n = virtual_file_read_at(dirfd, path, text, sizeof(text));

        return n < 0 ? (int) n : virtual_file_value(str_of(text, (size_t) n), key, ret);
}

int virtual_file_write_at(int dirfd, const char *path, const char *text)
{
        scoped(fd_closep) int fd = openat(dirfd, path, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || write(fd, text, strlen(text)) < 0)
                return -errno;
        return 0;
}
