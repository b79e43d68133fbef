/* SPDX-License-Identifier: Apache-2.0 */
#include "os/host.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/base.h"
#include "os/virtual_file.h"

/* The kernel refuses a mask that is smaller than its own; its maximum is 8192 CPUs. */
#define CPU_SETS (8192 / CPU_SETSIZE)

/* USER_HZ: an ABI constant of every architecture except alpha and ia64. */
#define USEC_PER_TICK (USEC_PER_SEC / 100)

unsigned host_cpus(void)
{
        cpu_set_t sets[CPU_SETS] = { 0 };
        int n = 0;

        if (sched_getaffinity(0, sizeof(sets), sets) == 0)
                n = CPU_COUNT_S(sizeof(sets), sets);
        return n > 0 ? (unsigned) n : 1;
}

static ssize_t read_proc(const char *root, const char *name, char *ret, size_t size)
{
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%s/proc/%s", root, name) >= PATH_MAX)
                return -ENAMETOOLONG;
        return virtual_file_read(path, ret, size);
}

/* "cpu  user nice system idle iowait irq softirq steal guest guest_nice"; guests are part of user. */
int host_cpu_time(const char *root, uint64_t *ret_busy, uint64_t *ret_total)
{
        enum { IDLE = 3, IOWAIT = 4, COLUMNS = 8 };
        char text[512]; /* the first line is the sum */
        ssize_t n = read_proc(root, "stat", text, sizeof(text));
        struct str rest = str_of(text, (size_t) MAX_OF(n, 0)), line, word;
        uint64_t total = 0, idle = 0, v;
        int column = 0;

        if (n < 0 || !str_split(&rest, '\n', &line) || !str_starts_with(line, STR("cpu ")))
                return -ENODATA;
        line = str_skip(line, 4);
        while (column < COLUMNS && str_split(&line, ' ', &word)) {
                if (word.n == 0)
                        continue;
                if (parse_u64_max(word, UINT64_MAX / USEC_PER_SEC, &v) < 0)
                        return -ENODATA;
                total += v;
                if (column == IDLE || column == IOWAIT)
                        idle += v;
                column++;
        }
        if (column <= IDLE)
                return -ENODATA;
        *ret_total = total * USEC_PER_TICK;
        *ret_busy = (total - idle) * USEC_PER_TICK;
        return 0;
}

void host_memory(const char *root, uint64_t *ret_used, uint64_t *ret_total)
{
        char text[512]; /* the lines we need are the first three */
        ssize_t n = read_proc(root, "meminfo", text, sizeof(text));
        struct str s = str_of(text, (size_t) MAX_OF(n, 0));
        uint64_t available, total;
        struct sysinfo si = { 0 };

        if (n > 0 && virtual_file_value(s, STR("MemTotal:"), &total) == 0
            && virtual_file_value(s, STR("MemAvailable:"), &available) == 0
            && total <= UINT64_MAX / KiB && available <= total) {
                *ret_used = (total - available) * KiB;
                *ret_total = total * KiB;
                return;
        }
        (void) sysinfo(&si);
        *ret_used = (uint64_t) (si.totalram - MIN_OF(si.freeram, si.totalram)) * si.mem_unit;
        *ret_total = (uint64_t) si.totalram * si.mem_unit;
}
