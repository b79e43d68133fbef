/* SPDX-License-Identifier: Apache-2.0 */
#include "api/ops/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

/* The second number of statm is pages. */
static uint64_t resident_bytes(void)
{
        char text[128];
        struct str rest, part = STR_NULL;
        uint64_t pages = 0;
        int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return 0;
        n = read(fd, text, sizeof(text));
        (void) close(fd);
        rest = str_of(text, n > 0 ? (size_t) n : 0);
        (void) str_split(&rest, ' ', &part);
        if (!str_split(&rest, ' ', &part) || parse_u64(part, &pages) < 0)
                return 0;
        return pages * (uint64_t) sysconf(_SC_PAGESIZE);
}

static uint64_t count_entries(const char *path)
{
        DIR *d = opendir(path);
        uint64_t n = 0;

        if (!d)
                return 0;
        while (readdir(d))
                n++;
        (void) closedir(d);
        return n > 3 ? n - 3 : 0; /* ".", ".." and the one that reads */
}

/* Linux tells it as the size of the folder since 6.2; before that somebody has to count. */
static uint64_t descriptors(void)
{
        struct stat st;

        if (stat("/proc/self/fd", &st) < 0)
                return 0;
        return st.st_size > 0 ? (uint64_t) st.st_size : count_entries("/proc/self/fd");
}

static uint64_t usec_of(struct timeval t)
{
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_usec;
}

struct process_usage process_usage(void)
{
        struct process_usage u = { .descriptors = descriptors(),
                                   .resident_bytes = resident_bytes() };
        struct rlimit limit;
        struct rusage usage;

        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                u.descriptors_max = limit.rlim_cur;
        if (getrusage(RUSAGE_SELF, &usage) == 0)
                u.cpu_usec = usec_of(usage.ru_utime) + usec_of(usage.ru_stime);
        return u;
}
