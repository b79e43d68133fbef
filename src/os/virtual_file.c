/* SPDX-License-Identifier: Apache-2.0 */
#include "os/virtual_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

ssize_t virtual_file_read(const char *path, char *ret, size_t size)
{
        scoped(fd_closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
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
