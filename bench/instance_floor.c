/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/instance_floor.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/cgroup.h"
#include "os/clone.h"
#include "plan/seccomp.h"
#include "warden/data.h"

#define CAPS_KEPT 0x800405fbU
#define CAPS_LAST 40
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

/* A step that fails ends the program. */
#define MUST(call)                                        \
        do {                                              \
                if ((call) < 0) {                         \
                        perror("instance_floor: " #call); \
                        _exit(1);                         \
                }                                         \
        } while (0)

static const char *const masked_files[] = { "proc/interrupts", "proc/key-users", "proc/keys",
                                            "proc/timer_list" };
static const char *const masked_dirs[] = { "proc/acpi", "sys/firmware" };
static const char *const read_only[] = { "proc/bus", "proc/fs", "proc/irq", "proc/sys", "proc/1" };

static const char *in_data(const struct instance_floor *f, const char *name,
                           char path[static PATH_MAX])
{
        (void) snprintf(path, PATH_MAX, "%s/%s", f->data, name);
        return path;
}

static int view(const struct instance_floor *f, const char *path)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY,
                                   .userns_fd = (uint64_t) f->userns };
        char lowers[PATH_MAX];
        int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

        MUST(fd);
        MUST(mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)));
        MUST(move_mount(fd, "", AT_FDCWD, in_data(f, DATA_STAGE "/" DATA_STAGE_LOWERS, lowers),
                        MOVE_MOUNT_F_EMPTY_PATH));
        return fd;
}

static int overlay(const struct instance_floor *f, const char *lower, const char *upper)
{
        int fs = fsopen("overlay", FSOPEN_CLOEXEC), fd;
        char text[PATH_MAX + 64], path[PATH_MAX];

        MUST(fs);
        (void) snprintf(text, sizeof(text), "/proc/self/fd/%d%s%s", view(f, lower),
                        upper ? "" : ":", upper ? "" : in_data(f, DATA_EMPTY, path));
        MUST(fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", text, 0));
        if (upper) {
                (void) snprintf(path, sizeof(path), "%s/" DATA_SANDBOXES "/%s/upper", f->data,
                                f->name);
                MUST(fsconfig(fs, FSCONFIG_SET_STRING, "upperdir", path, 0));
                (void) snprintf(path, sizeof(path), "%s/" DATA_SANDBOXES "/%s/work", f->data,
                                f->name);
                MUST(fsconfig(fs, FSCONFIG_SET_STRING, "workdir", path, 0));
        }
        MUST(fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
        fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
        MUST(fd);
        return fd;
}

static void make_root(const struct instance_floor *f)
{
        char path[PATH_MAX];
        int root = overlay(f, in_data(f, DATA_HOST, path), "upper");

        MUST(move_mount(root, "", AT_FDCWD, in_data(f, DATA_STAGE "/" DATA_STAGE_ROOT, path),
                        MOVE_MOUNT_F_EMPTY_PATH));
        MUST(fchdir(root));
        MUST(move_mount(overlay(f, "/usr", NULL), "", AT_FDCWD, "usr", MOVE_MOUNT_F_EMPTY_PATH));
        MUST(mount("proc", "proc", "proc", 0, NULL));
        MUST(mount("sysfs", "sys", "sysfs", MS_RDONLY, NULL));
        MUST(mount(in_data(f, DATA_DEVICES, path), "dev", NULL, MS_BIND, NULL));
        MUST(mount("devpts", "dev/pts", "devpts", 0, "ptmxmode=0666"));
        MUST(mount("tmpfs", "dev/shm", "tmpfs", 0, "mode=1777"));
        for (size_t i = 0; i < COUNT(read_only); i++) {
                MUST(mount(read_only[i], read_only[i], NULL, MS_BIND, NULL));
                MUST(mount(NULL, read_only[i], NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL));
        }
        (void) in_data(f, DATA_MASKS "/" DATA_MASK_FILE, path);
        for (size_t i = 0; i < COUNT(masked_files); i++)
                (void) mount(path, masked_files[i], NULL, MS_BIND,
                             NULL); /* not all kernels have it */
        (void) in_data(f, DATA_MASKS "/" DATA_MASK_DIR, path);
        for (size_t i = 0; i < COUNT(masked_dirs); i++)
                (void) mount(path, masked_dirs[i], NULL, MS_BIND, NULL);
        MUST(syscall(SYS_pivot_root, ".", "."));
        MUST(umount2(".", MNT_DETACH));
        MUST(chdir("/"));
}

static void drop_privileges(const struct instance_floor *f)
{
        struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
        struct __user_cap_data_struct data[2] = { { CAPS_KEPT, CAPS_KEPT, 0 }, { 0, 0, 0 } };
        struct sock_fprog prog = { (unsigned short) seccomp_filter_n,
                                   (struct sock_filter *) (uintptr_t) seccomp_filter };

        MUST(setns(f->userns, CLONE_NEWUSER));
        MUST(syscall(SYS_setgroups, 0, NULL));
        MUST(syscall(SYS_setresgid, 0, 0, 0));
        MUST(syscall(SYS_setresuid, 0, 0, 0));
        for (unsigned i = 0; i <= CAPS_LAST; i++)
                if (i >= 32 || !(CAPS_KEPT >> i & 1))
                        (void) prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
        MUST(syscall(SYS_capset, &head, data));
        MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog));
}

static void run(const struct instance_floor *f)
{
        char *const argv[] = { (char[]){ "init" }, NULL };

        if (f->tree)
                MUST(cgroup_join(f->group));
        MUST(setns(f->netns, CLONE_NEWNET));
        MUST(unshare(CLONE_NEWCGROUP));
        MUST(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
        MUST(sethostname("floor", 5));
        make_root(f);
        drop_privileges(f);
        if (f->input >= 0)
                MUST(dup2(f->input, STDIN_FILENO));
        MUST(dup2(f->output, STDOUT_FILENO));
        MUST(syscall(SYS_execveat, f->program, "", argv, argv + 1, AT_EMPTY_PATH));
}

pid_t instance_floor_start(const struct instance_floor *f)
{
        const struct clone_child how = { CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS,
                                         f->tree ? f->group->parts[CGROUP_UNIFIED] : -EBADF };
        int pidfd = -EBADF;
        pid_t pid = clone_child(&how, &pidfd);

        if (pid == 0)
                run(f);
        if (pidfd >= 0)
                (void) close(pidfd);
        return pid;
}
