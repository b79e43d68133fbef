/* SPDX-License-Identifier: Apache-2.0 */

/* What the kernel shows as files: 36 to 41, 55. */

#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static long open_to_write(const char *path)
{
        return try_open(path, O_WRONLY);
}

/* --- 36: settings of the host --- */

static const char *const settings[] = {
        "/proc/sys/kernel/core_pattern",  "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/hotplug",       "/proc/sys/kernel/panic",
        "/proc/sys/kernel/hostname",      "/proc/sys/kernel/pid_max",
        "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/file-max",
        "/proc/sys/net/ipv4/ip_forward",  "/proc/sys/kernel/ns_last_pid",
        "/proc/sys/vm/drop_caches",       "/proc/sys/fs/suid_dumpable",
};

static long write_settings(void)
{
        return try_each(settings, COUNT(settings), open_to_write);
}

/* CVE-2025-52881: the same file by other ways. */
static long write_by_link(void)
{
        if (symlink("/proc/sys/kernel/core_pattern", "link") < 0)
                return outcome(-1);
        return try_open("link", O_WRONLY);
}

static long write_by_task(void)
{
        return try_open("/proc/self/task/../../sys/kernel/core_pattern", O_WRONLY);
}

static long write_by_root_link(void)
{
        return try_open("/proc/self/root/proc/sys/kernel/core_pattern", O_WRONLY);
}

static long truncate_setting(void)
{
        return outcome(truncate("/proc/sys/kernel/core_pattern", 0));
}

/* Values of the first four say how to be run by the host's root. */
static long read_setting(const char *path)
{
        char text[256];
        const long n = read_file(path, text, sizeof(text));

        return n == 0 ? -ENODATA : n;
}

static long read_settings(void)
{
        return try_each(settings, 3, read_setting);
}

/* --- 37 --- */

static long sysrq(void)
{
        const long r = open_to_write("/proc/sysrq-trigger");

        return r == -ENOENT ? lacks("CONFIG_MAGIC_SYSRQ") : r;
}

/* --- 38: what tells about the host --- */

static long kcore(void)
{
        char text[16];
        const long r = read_file("/proc/kcore", text, sizeof(text));

        return r == -ENOENT ? lacks("CONFIG_PROC_KCORE") : r == 0 ? -ENODATA : r;
}

/* Works if an address is shown; the host's root sees them. */
static long kernel_addresses(void)
{
        char text[4096];
        const long r = read_file("/proc/kallsyms", text, sizeof(text));

        if (r <= 0)
                return r == -ENOENT ? lacks("CONFIG_KALLSYMS") : r;
        for (char *rest, *line = strtok_r(text, "\n", &rest); line;
             line = strtok_r(NULL, "\n", &rest))
                if (strtoull(line, NULL, 16) != 0)
                        return 0;
        return -ENODATA;
}

static long read_masked(const char *path)
{
        char text[256];
        const long n = read_file(path, text, sizeof(text));

        return n == 0 ? -ENODATA : n;
}

static long masked_files(void)
{
        static const char *const files[] = { "/proc/keys",          "/proc/key-users",
                                             "/proc/timer_list",    "/proc/interrupts",
                                             "/proc/latency_stats", "/proc/sched_debug" };

        return try_each(files, COUNT(files), read_masked);
}

static long entries(const char *path)
{
        DIR *d = opendir(path);
        long n = 0;

        if (!d)
                return outcome(-1);
        for (const struct dirent *e; (e = readdir(d));)
                n += e->d_name[0] != '.';
        (void) closedir(d);
        return n > 0 ? n : -ENODATA;
}

static long masked_dirs(void)
{
        static const char *const dirs[] = { "/sys/firmware", "/proc/acpi", "/proc/scsi",
                                            "/proc/asound", "/sys/devices/virtual/powercap" };

        return try_each(dirs, COUNT(dirs), entries);
}

/* --- 39 to 41 --- */

/* Does any file below let itself be opened for writing? Names in `names`, or all. */
static long writable_below(const char *dir, const char *const *names, int depth)
{
        DIR *d = opendir(dir);
        long r = -ENOENT;
        char path[512];

        if (!d)
                return outcome(-1);
        for (const struct dirent *e; r < 0 && (e = readdir(d));) {
                bool named = !names;

                if (e->d_name[0] == '.')
                        continue;
                for (const char *const *n = names; n && *n; n++)
                        named |= strcmp(*n, e->d_name) == 0;
                (void) snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
                if (e->d_type == DT_DIR && depth > 0)
                        r = writable_below(path, names, depth - 1);
                else if (e->d_type == DT_REG && named)
                        r = try_open(path, O_WRONLY);
                if (r >= 0)
                        note("%s ", path);
        }
        (void) closedir(d);
        return r >= 0 ? r : -EACCES;
}

static long cgroup_files(void)
{
        static const char *const names[] = {
                "cgroup.procs",          "tasks",         "release_agent",
                "notify_on_release",     "devices.allow", "memory.max",
                "memory.limit_in_bytes", "pids.max",      NULL
        };

        return writable_below("/sys/fs", names, 6);
}

static long release_agent(void)
{
        static const char *const files[] = { "/sys/fs/cgroup/release_agent",
                                             "/sys/fs/cgroup/memory/release_agent",
                                             "/sys/fs/cgroup/systemd/release_agent",
                                             "/sys/fs/cgroup/memory/notify_on_release",
                                             "/sys/fs/cgroup/devices/devices.allow" };

        return try_each(files, COUNT(files), open_to_write);
}

static long move_to_parent(void)
{
        static const char *const files[] = {
                "/sys/fs/cgroup/cgroup.procs",         "/sys/fs/cgroup/unified/cgroup.procs",
                "/sys/fs/cgroup/memory/cgroup.procs",  "/sys/fs/cgroup/pids/cgroup.procs",
                "/sys/fs/cgroup/../cgroup/pids/tasks",
        };

        return try_each(files, COUNT(files), open_to_write);
}

static long own_limits(void)
{
        static const char *const files[] = { "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/pids.max",
                                             "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                             "/sys/fs/cgroup/pids/pids.max",
                                             "/sys/fs/cgroup/cpu/cpu.cfs_quota_us" };

        return try_each(files, COUNT(files), open_to_write);
}

static long make_group(void)
{
        static const char *const dirs[] = { "/sys/fs/cgroup/evil", "/sys/fs/cgroup/pids/evil",
                                            "/sys/fs/cgroup/unified/evil" };
        long r = -ENOENT;

        for (size_t i = 0; i < COUNT(dirs) && r < 0; i++)
                r = outcome(mkdir(dirs[i], 0700));
        return r;
}

/* Shows where in the host's tree it is, if that is not the root of a namespace, or the group of a command below it. */
static long own_group_is_root(void)
{
        char text[4096];
        const long r = read_file("/proc/self/cgroup", text, sizeof(text));

        if (r < 0)
                return r;
        for (char *rest, *line = strtok_r(text, "\n", &rest); line;
             line = strtok_r(NULL, "\n", &rest)) {
                const char *path = strrchr(line, ':');

                if (path && strcmp(path, ":/") != 0 && strncmp(path, ":/commands/", 7) != 0) {
                        note("%s", line);
                        return -EXDEV;
                }
        }
        return 0;
}

static long oom_score_down(void)
{
        return try_write("/proc/self/oom_score_adj", "-1000");
}

static long uevent_helper(void)
{
        const long r = open_to_write("/sys/kernel/uevent_helper");

        return r == -ENOENT ? lacks("CONFIG_UEVENT_HELPER") : r;
}

/* An event of a device that the host's udev would act upon. */
static long uevents(void)
{
        static const char *const names[] = { "uevent", NULL };
        const long r = writable_below("/sys/class/mem", names, 1);

        if (r >= 0)
                return r;
        return writable_below("/sys/devices", names, 5);
}

static long all_of_sys(void)
{
        return writable_below("/sys", NULL, 7);
}

static long all_of_proc_sys(void)
{
        return writable_below("/proc/sys", NULL, 7);
}

static long binfmt(void)
{
        static const char *const files[] = { "/proc/sys/fs/binfmt_misc/register",
                                             "/proc/sys/fs/binfmt_misc/status" };

        return try_each(files, COUNT(files), open_to_write);
}

static const struct probe probes[] = {
        { 36, "write-settings", write_settings, OUTSIDE, { EROFS, EACCES } },
        { 36, "write-by-link", write_by_link, OUTSIDE, { EROFS, EACCES } },
        { 36, "write-by-task", write_by_task, OUTSIDE, { EROFS, EACCES } },
        { 36, "write-by-root-link", write_by_root_link, OUTSIDE, { EROFS, EACCES } },
        { 36, "truncate", truncate_setting, INSIDE, { EROFS, EACCES } },
        { 36, "read-settings", read_settings, OUTSIDE, { ENODATA, EACCES } },
        { 36, "all-of-proc-sys", all_of_proc_sys, OUTSIDE, { EACCES } },
        { 37, "sysrq-trigger", sysrq, OUTSIDE, { EROFS, EACCES } },
        { 38, "kcore", kcore, OUTSIDE, { ENODATA, EACCES } },
        { 38, "kallsyms", kernel_addresses, OUTSIDE, { ENODATA, EACCES, EPERM } },
        { 38, "masked-files", masked_files, OUTSIDE, { ENODATA, EACCES } },
        { 38, "masked-directories", masked_dirs, OUTSIDE, { ENODATA, EACCES } },
        { 39, "cgroup-files", cgroup_files, OUTSIDE, { EACCES } },
        { 39, "release_agent", release_agent, OUTSIDE, { ENOENT, EROFS, EACCES } },
        { 40, "move-to-parent", move_to_parent, OUTSIDE, { ENOENT, EROFS, EACCES } },
        { 40, "own-limits", own_limits, INSIDE, { ENOENT, EROFS, EACCES } },
        { 40, "make-group", make_group, INSIDE, { ENOENT, EROFS, EACCES, EPERM } },
        { 40, "own-group-is-root", own_group_is_root, OUTSIDE, { 0 } },
        { 40, "oom_score_adj-down", oom_score_down, OUTSIDE, { EACCES } },
        { 41, "uevent_helper", uevent_helper, OUTSIDE, { EROFS, EACCES } },
        { 41, "uevents", uevents, OUTSIDE, { EACCES } },
        { 41, "all-of-sys", all_of_sys, OUTSIDE, { EACCES } },
        { 55, "binfmt-register", binfmt, INSIDE, { ENOENT, EROFS, EACCES } },
};

const struct probe_theme theme_files = THEME(probes);
