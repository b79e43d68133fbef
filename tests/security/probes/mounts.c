/* SPDX-License-Identifier: Apache-2.0 */

/* What is where: 31 to 35, 55. */

#include "probe.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

/* --- by mount(2) --- */

static const char *const mounted[] = {
        "/", "/usr", "/proc", "/sys", "/dev", "/dev/pts", "/dev/shm", "/proc/sys", "/proc/1",
};

static long remount_writable(const char *path)
{
        return outcome(mount(NULL, path, NULL, MS_REMOUNT | MS_BIND, NULL));
}

static long remount_all(void)
{
        return try_each(mounted, COUNT(mounted), remount_writable);
}

static long remount_superblock(const char *path)
{
        return outcome(mount(NULL, path, NULL, MS_REMOUNT, NULL));
}

static long remount_superblocks(void)
{
        return try_each(mounted, COUNT(mounted), remount_superblock);
}

static long make_shared(void)
{
        return outcome(mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL));
}

static long unmount(const char *path)
{
        return outcome(umount2(path, MNT_DETACH));
}

static long unmount_all(void)
{
        static const char *const places[] = { "/proc/keys",    "/proc/timer_list",
                                              "/proc/sys",     "/proc/interrupts",
                                              "/sys/firmware", "/usr",
                                              "/sys",          "/proc" };

        return try_each(places, COUNT(places), unmount);
}

static long bind_to_other_dir(void)
{
        if (mkdir("here", 0700) < 0)
                return outcome(-1);
        return outcome(mount("/usr", "here", NULL, MS_BIND | MS_REC, NULL));
}

static long move_away(void)
{
        if (mkdir("here", 0700) < 0)
                return outcome(-1);
        return outcome(mount("/dev/shm", "here", NULL, MS_MOVE, NULL));
}

static long mount_type(const char *type)
{
        if (mkdir("here", 0700) < 0 && errno != EEXIST)
                return outcome(-1);
        return outcome(mount("x", "here", type, 0, NULL));
}

static long mount_tmpfs(void)
{
        return mount_type("tmpfs");
}

static long mount_proc(void)
{
        return mount_type("proc");
}

static long remount_proc_without_hidepid(void)
{
        return outcome(mount(NULL, "/proc", NULL, MS_REMOUNT, "hidepid=0"));
}

static long mount_sysfs(void)
{
        return mount_type("sysfs");
}

static long mount_cgroup2(void)
{
        return mount_type("cgroup2");
}

/* CVE-2022-0492: a hierarchy of version 1, whose release_agent is run by the host. */
static long mount_cgroup_v1(void)
{
        if (mkdir("here", 0700) < 0)
                return outcome(-1);
        return outcome(mount("x", "here", "cgroup", 0, "memory"));
}

static long mount_devpts(void)
{
        return mount_type("devpts");
}

static long mount_binfmt(void)
{
        return mount_type("binfmt_misc");
}

static long mount_debugfs(void)
{
        return mount_type("debugfs");
}

static long mount_bpf(void)
{
        return mount_type("bpf");
}

/* CVE-2023-0386 begins with an overlay of one's own. */
static long mount_overlay(void)
{
        static const char *const dirs[] = { "lower", "upper", "work", "here" };

        for (size_t i = 0; i < COUNT(dirs); i++)
                if (mkdir(dirs[i], 0700) < 0)
                        return outcome(-1);
        return outcome(
                mount("x", "here", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work"));
}

static long mount_over_agent(void)
{
        const int fd = open("evil", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);

        if (fd < 0)
                return outcome(-1);
        (void) close(fd);
        return outcome(mount("evil", "/proc/1/exe", NULL, MS_BIND, NULL));
}

static long mount_over_shell(void)
{
        return outcome(mount("/dev/null", "/bin/sh", NULL, MS_BIND, NULL));
}

/* --- by the newer calls --- */

static long fs_open(void)
{
        return outcome(syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC));
}

static long fs_pick(void)
{
        return outcome(syscall(SYS_fspick, AT_FDCWD, "/tmp", 0));
}

/* CVE-2022-0185: a long value for a parameter of the old kind. */
static long fs_config(void)
{
        const long fd = syscall(SYS_fsopen, "tmpfs", 0);

        return outcome(
                syscall(SYS_fsconfig, fd < 0 ? 0 : fd, FSCONFIG_SET_STRING, "size", "1m", 0));
}

static long fs_mount(void)
{
        const long fd = syscall(SYS_fsopen, "tmpfs", 0);

        if (fd >= 0)
                (void) syscall(SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
        return outcome(syscall(SYS_fsmount, fd < 0 ? 0 : fd, 0, 0));
}

static long open_view(void)
{
        return outcome(syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE));
}

static long open_place(void)
{
        return outcome(syscall(SYS_open_tree, AT_FDCWD, "/", 0));
}

static long open_view_with_attributes(void)
{
        struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };
        const long r = outcome(
                syscall(SYS_open_tree_attr, AT_FDCWD, "/", OPEN_TREE_CLONE, &attr, sizeof(attr)));

        return r;
}

static long move_by_descriptor(void)
{
        const long fd = syscall(SYS_open_tree, AT_FDCWD, "/usr", OPEN_TREE_CLONE);

        if (mkdir("here", 0700) < 0)
                return outcome(-1);
        return outcome(syscall(SYS_move_mount, fd < 0 ? AT_FDCWD : fd, fd < 0 ? "/dev/shm" : "",
                               AT_FDCWD, "here", fd < 0 ? 0 : MOVE_MOUNT_F_EMPTY_PATH));
}

static long set_attributes(const char *path)
{
        struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID };

        return outcome(syscall(SYS_mount_setattr, AT_FDCWD, path, 0, &attr, sizeof(attr)));
}

static long set_attributes_all(void)
{
        return try_each(mounted, COUNT(mounted), set_attributes);
}

/* --- roots --- */

static long pivot(void)
{
        (void) mkdir("here", 0700);
        (void) mount("x", "here", "tmpfs", 0, NULL);
        (void) mkdir("here/old", 0700);
        return outcome(syscall(SYS_pivot_root, "here", "here/old"));
}

/* The classic: a root below, and then up from a directory that was above it. Root may do it, and comes
 * out at the sandbox's root and no further. */
static long chroot_and_climb(void)
{
        struct stat before, after;
        int up;

        if (stat("/", &before) < 0)
                return outcome(-1);
        up = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (mkdir("below", 0700) < 0 || chroot("below") < 0)
                return geteuid() != 0 && errno == EPERM ? 0 : outcome(-1);
        if (fchdir(up) < 0)
                return outcome(-1);
        for (int i = 0; i < 1000; i++)
                if (chdir("..") < 0)
                        return outcome(-1);
        if (chroot(".") < 0 || stat("/", &after) < 0)
                return outcome(-1);
        return before.st_dev == after.st_dev && before.st_ino == after.st_ino ? 0 : -EXDEV;
}

/* Dots lead nowhere above the root. */
static long climb(void)
{
        struct stat root, above;

        if (stat("/", &root) < 0
            || stat("/../../../../../../../../../../../../../../..", &above) < 0)
                return outcome(-1);
        return root.st_dev == above.st_dev && root.st_ino == above.st_ino ? 0 : -EXDEV;
}

/* --- read-only places --- */

static long create_in(const char *dir)
{
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/evil", dir);
        return try_open(path, O_WRONLY | O_CREAT);
}

static long create_in_read_only(void)
{
        static const char *const dirs[] = { "/usr", "/usr/bin", "/usr/lib",        "/dev",
                                            "/sys", "/proc",    "/proc/sys/kernel" };

        return try_each(dirs, COUNT(dirs), create_in);
}

/* Nor by another name, mode or owner. */
static long change_usr(void)
{
        if (chmod("/usr/bin/env", 04777) == 0 || unlink("/usr/bin/env") == 0
            || rename("/usr/bin/env", "/usr/bin/evil") == 0 || chown("/usr/bin", 1000, 1000) == 0
            || truncate("/usr/bin/env", 0) == 0)
                return 0;
        return outcome(-1);
}

static const struct probe probes[] = {
        { 31, "remount-writable", remount_all, OUTSIDE, { EPERM } },
        { 31, "remount-superblock", remount_superblocks, INSIDE, { EPERM } },
        { 31, "make-shared", make_shared, OUTSIDE, { EPERM } },
        { 31, "unmount", unmount_all, OUTSIDE, { EPERM } },
        { 31, "bind", bind_to_other_dir, OUTSIDE, { EPERM } },
        { 31, "move", move_away, INSIDE, { EPERM } },
        { 31, "mount-tmpfs", mount_tmpfs, OUTSIDE, { EPERM } },
        { 31, "mount-overlay", mount_overlay, OUTSIDE, { EPERM } },
        { 31, "create-in-read-only", create_in_read_only, INSIDE, { EROFS, EACCES, EPERM } },
        { 31, "change-usr", change_usr, INSIDE, { EROFS } },
        { 32, "fsopen", fs_open, OUTSIDE, { EPERM } },
        { 32, "fspick", fs_pick, OUTSIDE, { EPERM } },
        { 32, "fsconfig", fs_config, OUTSIDE, { EPERM } },
        { 32, "fsmount", fs_mount, OUTSIDE, { EPERM } },
        { 32, "open_tree-clone", open_view, OUTSIDE, { EPERM } },
        { 32, "open_tree", open_place, OUTSIDE, { EPERM } },
        { 32, "open_tree_attr", open_view_with_attributes, OUTSIDE, { EPERM, ENOSYS } },
        { 32, "move_mount", move_by_descriptor, OUTSIDE, { EPERM } },
        { 32, "mount_setattr", set_attributes_all, OUTSIDE, { EPERM } },
        { 33, "pivot_root", pivot, OUTSIDE, { EPERM } },
        { 33, "chroot-and-climb", chroot_and_climb, OUTSIDE, { 0 } },
        { 33, "climb", climb, OUTSIDE, { 0 } },
        { 34, "mount-proc", mount_proc, OUTSIDE, { EPERM } },
        { 34, "remount-proc", remount_proc_without_hidepid, OUTSIDE, { EPERM } },
        { 34, "mount-sysfs", mount_sysfs, OUTSIDE, { EPERM } },
        { 34, "mount-cgroup2", mount_cgroup2, OUTSIDE, { EPERM } },
        { 34, "mount-devpts", mount_devpts, OUTSIDE, { EPERM } },
        { 34, "mount-debugfs", mount_debugfs, OUTSIDE, { EPERM } },
        { 34, "mount-bpf", mount_bpf, OUTSIDE, { EPERM } },
        { 35, "mount-over-agent", mount_over_agent, INSIDE, { EPERM, EACCES } },
        { 35, "mount-over-shell", mount_over_shell, OUTSIDE, { EPERM } },
        { 39, "mount-cgroup-v1", mount_cgroup_v1, OUTSIDE, { EPERM } },
        { 55, "mount-binfmt_misc", mount_binfmt, OUTSIDE, { EPERM } },
};

const struct probe_theme theme_mounts = THEME(probes);
