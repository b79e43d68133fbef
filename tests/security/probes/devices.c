/* SPDX-License-Identifier: Apache-2.0 */

/* Devices: 43 to 45, 50. */

#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* --- 43 --- */

static long make(mode_t type, unsigned major_number, unsigned minor_number)
{
        return outcome(mknod("device", type | 0666, makedev(major_number, minor_number)));
}

static long make_memory(void)
{
        return make(S_IFCHR, 1, 1);
}

static long make_null(void)
{
        return make(S_IFCHR, 1, 3);
}

static long make_disk(void)
{
        return make(S_IFBLK, 8, 0);
}

/* What an overlay takes for "deleted"; needs no privilege elsewhere. */
static long make_whiteout(void)
{
        return make(S_IFCHR, 0, 0);
}

static long make_whiteout_at(void)
{
        return outcome(syscall(SYS_mknodat, AT_FDCWD, "device", (1UL << 32) | S_IFCHR | 0600, 0));
}

/* One that rename leaves behind. */
static long rename_whiteout(void)
{
        const int fd = open("a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        struct stat st;

        if (fd < 0)
                return outcome(-1);
        (void) close(fd);
        if (syscall(SYS_renameat2, AT_FDCWD, "a", AT_FDCWD, "b", 4 /* RENAME_WHITEOUT */) < 0)
                return outcome(-1);
        return stat("a", &st) == 0 && S_ISCHR(st.st_mode) ? 0 : -ENOENT;
}

/* --- 44 --- */

static long open_device(const char *path)
{
        const long r = try_open(path, O_RDONLY);

        return r < 0 ? try_open(path, O_RDWR) : r;
}

static long devices_of_machine(void)
{
        static const char *const devices[] = {
                "/dev/mem",
                "/dev/kmem",
                "/dev/port",
                "/dev/kmsg",
                "/dev/kvm",
                "/dev/fuse",
                "/dev/loop-control",
                "/dev/loop0",
                "/dev/net/tun",
                "/dev/sda",
                "/dev/vda",
                "/dev/nvme0n1",
                "/dev/mapper/control",
                "/dev/vhost-vsock",
                "/dev/vhost-net",
                "/dev/vsock",
                "/dev/uinput",
                "/dev/hpet",
                "/dev/tty0",
                "/dev/tty1",
                "/dev/ttyS0",
                "/dev/console",
                "/dev/autofs",
                "/dev/btrfs-control",
                "/dev/cuse",
                "/dev/dri/card0",
                "/dev/snapshot",
                "/dev/userfaultfd",
                "/dev/zram0",
                "/dev/rtc0",
                "/dev/mqueue/evil",
        };

        return try_each(devices, COUNT(devices), open_device);
}

/* Everything in /dev is on a short list. */
static long only_known_devices(void)
{
        static const char *const known[] = { "null",    "zero", "full",   "random",
                                             "urandom", "tty",  "ptmx",   "pts",
                                             "shm",     "fd",   "stdin",  "stdout",
                                             "stderr",  "core", "mqueue", "console" };
        DIR *d = opendir("/dev");

        if (!d)
                return outcome(-1);
        for (const struct dirent *e; (e = readdir(d));) {
                bool is = e->d_name[0] == '.';

                for (size_t i = 0; i < COUNT(known); i++)
                        is |= strcmp(known[i], e->d_name) == 0;
                if (!is) {
                        note("/dev/%s", e->d_name);
                        return -EEXIST;
                }
        }
        (void) closedir(d);
        return 0;
}

/* CVE-2025-31133: what is called so is the real one. */
static long devices_are_genuine(void)
{
        static const struct {
                const char *path;
                unsigned minor_number;
        } devices[] = { { "/dev/null", 3 },
                        { "/dev/zero", 5 },
                        { "/dev/full", 7 },
                        { "/dev/random", 8 },
                        { "/dev/urandom", 9 } };
        struct stat st;

        for (size_t i = 0; i < COUNT(devices); i++)
                if (stat(devices[i].path, &st) < 0 || !S_ISCHR(st.st_mode)
                    || st.st_rdev != makedev(1, devices[i].minor_number)) {
                        note("%s", devices[i].path);
                        return -ENODEV;
                }
        return 0;
}

static long replace_null(void)
{
        if (unlink("/dev/null") == 0 || symlink("/etc", "/dev/evil") == 0
            || rename("/dev/zero", "/dev/null") == 0)
                return 0;
        return outcome(-1);
}

/* --- 45 --- */

static long kernel_log(void)
{
        char text[64];

        return outcome(syscall(SYS_syslog, 3, text, sizeof(text)));
}

static long kernel_log_size(void)
{
        return outcome(syscall(SYS_syslog, 10, NULL, 0));
}

static long kernel_log_files(void)
{
        static const char *const files[] = { "/dev/kmsg", "/proc/kmsg" };

        return try_each(files, COUNT(files), open_device);
}

/* --- 50 --- */

/* A terminal of its own, which is the session's. */
static int terminal(void)
{
        const int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
        int unlock = 0, slave;

        if (fd < 0 || ioctl(fd, TIOCSPTLCK, &unlock) < 0)
                return -1;
        slave = ioctl(fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        return slave >= 0 && ioctl(slave, TIOCSCTTY, 0) == 0 ? slave : -1;
}

static long terminal_call(unsigned long request, const void *argument)
{
        const int fd = terminal();

        return fd < 0 ? -ENOTTY : outcome(syscall(SYS_ioctl, fd, request, argument));
}

static long type_ahead(void)
{
        return terminal_call(TIOCSTI, "x");
}

static long type_ahead_high(void)
{
        return terminal_call(TIOCSTI | 1UL << 32, "x");
}

static long type_ahead_higher(void)
{
        return terminal_call(TIOCSTI | 0xdeadbeefUL << 32, "x");
}

/* Of a virtual console only; the number must not even arrive. */
static long console_call(void)
{
        return terminal_call(TIOCLINUX | 1UL << 32, "\2");
}

static long line_discipline(void)
{
        const int discipline = 0;

        return terminal_call(TIOCSETD | 1UL << 63, &discipline);
}

static const struct probe probes[] = {
        { 43, "mknod-mem", make_memory, OUTSIDE, { EPERM } },
        { 43, "mknod-null", make_null, OUTSIDE, { EPERM } },
        { 43, "mknod-disk", make_disk, OUTSIDE, { EPERM } },
        { 43, "mknod-whiteout", make_whiteout, OUTSIDE, { EPERM } },
        { 43, "mknodat-whiteout-high-bits", make_whiteout_at, OUTSIDE, { EPERM } },
        { 43, "rename-whiteout", rename_whiteout, OUTSIDE, { EPERM, EINVAL } },
        { 44, "devices-of-machine", devices_of_machine, OUTSIDE, { ENOENT, EACCES, ENXIO } },
        { 44, "only-known-devices", only_known_devices, INSIDE, { 0 } },
        { 44, "devices-are-genuine", devices_are_genuine, OUTSIDE, { 0 } },
        { 44, "replace-null", replace_null, INSIDE, { EROFS } },
        { 45, "syslog-read", kernel_log, OUTSIDE, { EPERM } },
        { 45, "syslog-size", kernel_log_size, OUTSIDE, { EPERM } },
        { 45, "kmsg", kernel_log_files, OUTSIDE, { ENOENT, EACCES, EPERM } },
        { 50, "TIOCSTI", type_ahead, OUTSIDE, { EPERM } },
        { 50, "TIOCSTI-high-bit", type_ahead_high, OUTSIDE, { EPERM } },
        { 50, "TIOCSTI-high-bits", type_ahead_higher, OUTSIDE, { EPERM } },
        { 50, "TIOCLINUX-high-bit", console_call, INSIDE, { EPERM } },
        { 50, "TIOCSETD-high-bit", line_discipline, OUTSIDE, { EPERM } },
};

const struct probe_theme theme_devices = THEME(probes);
