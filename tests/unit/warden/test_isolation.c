/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the walls hold, each tried from inside: this very program is the first process of a sandbox
 * and reports what came of its attempts.
 *
 * Once all walls stand. Once capabilities, no_new_privs and the filter are left out: what is still
 * refused then is refused because of who owns the namespaces, and needs no other wall.
 */

#include "warden/build.h"

#include <linux/nsfs.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "os/clone.h"
#include "os/confine.h"
#include "os/netns.h"
#include "os/userns.h"
#include "tests/lib/caps_get.h"
#include "tests/lib/instance_world.h"

#define OPEN \
        (-1) /* without the filter it is the kernel's affair, and differs from one to another */

typedef long attempt_fn(void); /* negative with errno: refused */

/* For states, not attempts: 0 if it is as it should be. */
static long as_it_should(bool is)
{
        errno = EDOM;
        return is ? 0 : -1;
}

/* --- mounts --- */

static long remount_usr(void)
{
        return mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL);
}

static long setattr_usr(void)
{
        struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

        return mount_setattr(AT_FDCWD, "/usr", 0, &attr, sizeof(attr));
}

static long umount_usr(void)
{
        return umount2("/usr", MNT_DETACH);
}

static long umount_mask(void)
{
        return umount2("/proc/interrupts", 0);
}

static long mount_over(void)
{
        return mount("x", "/tmp", "tmpfs", 0, NULL);
}

static long view_root(void)
{
        return open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

static long pivot(void)
{
        return syscall(SYS_pivot_root, ".", ".");
}

static long write_usr(void)
{
        return open("/usr/x", O_WRONLY | O_CREAT, 0644);
}

static long write_dev(void)
{
        return open("/dev/x", O_WRONLY | O_CREAT, 0644);
}

/* A mount namespace of the sandbox's own: what came from outside is locked in it. */
static long own_mounts_remount(void)
{
        return unshare(CLONE_NEWNS) < 0 ? -1 : remount_usr();
}

static long own_mounts_setattr(void)
{
        return unshare(CLONE_NEWNS) < 0 ? -1 : setattr_usr();
}

static long own_mounts_umount(void)
{
        return unshare(CLONE_NEWNS) < 0 ? -1 : umount_mask();
}

static long own_mounts_proc(void)
{
        return unshare(CLONE_NEWNS) < 0 ? -1 : mount("p", "/mnt", "proc", 0, NULL);
}

static long own_mounts_sysfs(void)
{
        return unshare(CLONE_NEWNS) < 0 ? -1 : mount("s", "/mnt", "sysfs", 0, NULL);
}

/* --- files of the host that are not world-readable --- */

static long read_from(const char *path)
{
        return open(path, O_RDONLY);
}

static long key_in_usr(void)
{
        return read_from("/usr/hutch-test/key");
}

static long key_of_a_group(void)
{
        return read_from("/usr/hutch-test/group-key");
}

static long behind_a_shut_dir(void)
{
        return read_from("/usr/hutch-test/shut/file");
}

static long open_up_a_key(void)
{
        return chmod("/usr/hutch-test/key", 0644);
}

static long own_mounts_open_up(void)
{
        struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

        if (unshare(CLONE_NEWNS) == 0)
                (void) mount_setattr(AT_FDCWD, "/usr", 0, &attr, sizeof(attr));
        return key_in_usr();
}

static long world_readable(void)
{
        return read_from("/usr/hutch-test/open");
}

/* --- names, links, devices --- */

static long set_hostname(void)
{
        return sethostname("evil", 4);
}

static long link_down(void)
{
        int fd = socket(AF_INET, SOCK_DGRAM, 0);
        struct ifreq req = { .ifr_name = "lo" };

        return fd < 0 ? -1 : ioctl(fd, SIOCSIFFLAGS, &req);
}

static long bridges(void)
{
        int fd = socket(AF_INET, SOCK_DGRAM, 0);
        unsigned long args[3] = { 0 };

        return fd < 0 ? -1 : ioctl(fd, SIOCGIFBR, args);
}

static long domain_name(void)
{
        struct utsname name;

        return uname(&name) < 0 ? -1 : as_it_should(strcmp(name.domainname, "(none)") == 0);
}

static long descriptors_are_few(void)
{
        struct rlimit l;

        return getrlimit(RLIMIT_NOFILE, &l) < 0
                       ? -1
                       : as_it_should(l.rlim_cur == 1024 && l.rlim_max > 1024);
}

static long raw_socket(void)
{
        return socket(AF_INET, SOCK_RAW, 1);
}

static long packet_socket(void)
{
        return socket(AF_PACKET, SOCK_RAW, 0);
}

static long make_device(void)
{
        return mknod("/tmp/mem", S_IFCHR | 0666, makedev(1, 1));
}

static long set_clock(void)
{
        struct timespec t = { 0, 0 };

        return clock_settime(CLOCK_REALTIME, &t);
}

/* --- the kernel's files --- */

static long write_to(const char *path)
{
        return open(path, O_WRONLY);
}

static long core_pattern(void)
{
        return write_to("/proc/sys/kernel/core_pattern");
}

/* Not every kernel has these two. */
static long refused_if_there(const char *path)
{
        const long fd = write_to(path);

        return as_it_should(fd < 0 && (errno == EACCES || errno == EROFS || errno == ENOENT));
}

static long sysrq(void)
{
        return refused_if_there("/proc/sysrq-trigger");
}

static long places_are_read_only(void)
{
        static const char *const places[] = { "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                              "/proc/1",   "/sys",     "/dev",      "/usr" };
        struct statvfs st;

        for (size_t i = 0; i < ARRAY_SIZE(places); i++)
                if (statvfs(places[i], &st) < 0 || !(st.f_flag & ST_RDONLY))
                        return as_it_should(false);
        return 0;
}

static long own_limits_of_agent(void)
{
        return write_to("/proc/1/oom_score_adj");
}

static long agents_program(void)
{
        return write_to("/proc/1/exe");
}

static long uevent_helper(void)
{
        return refused_if_there("/sys/kernel/uevent_helper");
}

static long forwarding(void)
{
        return write_to("/proc/sys/net/ipv4/ip_forward");
}

/* --- the kernel --- */

static long handle(void)
{
        struct {
                struct file_handle h;
                char bytes[8];
        } h = { .h = { .handle_bytes = 8, .handle_type = 1 } };

        return open_by_handle_at(open("/", O_RDONLY), &h.h, O_RDONLY);
}

static long load_module(void)
{
        return syscall(SYS_init_module, "", 0, "");
}

static long kernel_log(void)
{
        return syscall(SYS_syslog, 3, NULL, 0);
}

static long swap(void)
{
        return syscall(SYS_swapon, "/tmp/x", 0);
}

static long new_users(void)
{
        return unshare(CLONE_NEWUSER);
}

static long io_ring(void)
{
        return syscall(SYS_io_uring_setup, 1, NULL);
}

static long clone_three(void)
{
        return syscall(SYS_clone3, NULL, 0);
}

/* The agent may use it, and gets no namespace by it. */
static long clone_three_flags(uint64_t flags)
{
        struct clone_args args = { .flags = flags, .exit_signal = SIGCHLD };
        long pid = syscall(SYS_clone3, &args, sizeof(args));

        if (pid == 0)
                _exit(0);
        return pid;
}

static long clone_three_users(void)
{
        return clone_three_flags(CLONE_NEWUSER);
}

static long clone_three_mounts(void)
{
        return clone_three_flags(CLONE_NEWNS);
}

static long clone_three_of_command(void)
{
        return confine_clone3() < 0 ? 0 : clone_three_flags(0);
}

static long terminal_input(void)
{
        return syscall(SYS_ioctl, 0, TIOCSTI | 1UL << 32, "x");
}

/* --- states --- */

static long capabilities_are_few(void)
{
        struct caps c;

        return caps_get(&c) < 0 ? -1
                                : as_it_should(c.permitted == 0x800405fb && c.bounding == 0x800405fb
                                               && c.ambient == 0 && c.inheritable == 0);
}

static long no_new_privs(void)
{
        return as_it_should(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
}

static long only_given_descriptors(void)
{
        for (int fd = PLAN_FDS; fd < 1024; fd++)
                if (fcntl(fd, F_GETFD) >= 0)
                        return as_it_should(false);
        return 0;
}

static long first_process_of_its_own_session(void)
{
        return as_it_should(getpid() == 1 && getsid(0) == 1 && getppid() == 0);
}

static long at_the_root(void)
{
        char path[64];

        return as_it_should(getcwd(path, sizeof(path)) && strcmp(path, "/") == 0);
}

static long root_is_unprivileged_outside(void)
{
        struct stat st;

        return as_it_should(getuid() == 0 && stat("/root", &st) == 0 && st.st_uid == 0
                            && stat("/proc/sys", &st) == 0 && st.st_uid == 65534);
}

static long secrets_are_not_in_environ(void)
{
        for (char **e = environ; *e; e++)
                if (strncmp(*e, "HUTCH_EXECD", 11) == 0)
                        return as_it_should(false);
        return 0;
}

static long no_favour_when_memory_is_short(void)
{
        int fd = open("/proc/self/oom_score_adj", O_RDWR);
        char text[16] = "";

        if (fd < 0 || read(fd, text, sizeof(text) - 1) < 1)
                return -1;
        return as_it_should(*text != '-' && pwrite(fd, "-1", 2, 0) < 0);
}

static long terminals_are_counted(void)
{
        int fds[300], n = 0;
        long r;

        while (n < (int) ARRAY_SIZE(fds) && (fds[n] = open("/dev/ptmx", O_RDWR | O_NOCTTY)) >= 0)
                n++;
        r = as_it_should(n == 256);
        while (n > 0)
                (void) close(fds[--n]);
        return r;
}

/* --- the table --- */

static const struct attempt {
        const char *name;
        attempt_fn *fn;
        int walls; /* errno with all walls; 0: it works */
        int bare;  /* errno without capabilities and filter */
} attempts[] = {
        { "remount /usr writable", remount_usr, EPERM, EPERM },
        { "the same by mount_setattr", setattr_usr, EPERM, EPERM },
        { "unmount /usr", umount_usr, EPERM, EPERM },
        { "unmount a mask", umount_mask, EPERM, EPERM },
        { "mount a tmpfs", mount_over, EPERM, EPERM },
        { "view of the root", view_root, EPERM, EPERM },
        { "pivot_root", pivot, EPERM, EPERM },
        { "write to /usr", write_usr, EROFS, EROFS },
        { "write to /dev", write_dev, EROFS, EROFS },
        { "a key below /usr", key_in_usr, EACCES, EACCES },
        { "a key of root's group", key_of_a_group, EACCES, EACCES },
        { "behind a shut directory", behind_a_shut_dir, EACCES, EACCES },
        { "open up a key", open_up_a_key, EROFS, EROFS },
        { "own mounts, a key", own_mounts_open_up, EACCES, EACCES },
        { "world-readable", world_readable, 0, 0 },
        { "host name", set_hostname, EPERM, EPERM },
        { "link down", link_down, EPERM, EPERM },
        { "raw socket", raw_socket, EPERM, EPERM },
        { "packet socket", packet_socket, EAFNOSUPPORT, EPERM },
        { "device", make_device, EPERM, EPERM },
        { "clock", set_clock, EPERM, EPERM },
        { "core_pattern", core_pattern, EACCES, EACCES },
        { "sysrq", sysrq, 0, 0 },
        { "read-only places", places_are_read_only, 0, 0 },
        { "settings of the agent", own_limits_of_agent, EROFS, EROFS },
        { "program of the agent", agents_program, EACCES, EACCES },
        { "uevent_helper", uevent_helper, 0, 0 },
        { "forwarding", forwarding, EACCES, EACCES },
        { "file by handle", handle, EPERM, EPERM },
        { "kernel module", load_module, EPERM, OPEN },
        { "kernel log", kernel_log, EPERM, EPERM },
        { "swap", swap, EPERM, EPERM },
        { "own mounts, remount /usr", own_mounts_remount, EPERM, ENOSPC },
        { "own mounts, mount_setattr", own_mounts_setattr, EPERM, ENOSPC },
        { "own mounts, unmount a mask", own_mounts_umount, EPERM, ENOSPC },
        { "own mounts, new proc", own_mounts_proc, EPERM, ENOSPC },
        { "own mounts, new sysfs", own_mounts_sysfs, EPERM, ENOSPC },

        /* These are the other walls' alone. */
        { "user namespace", new_users, EPERM, ENOSPC },
        { "io_uring", io_ring, EPERM, OPEN },
        { "clone3, without arguments", clone_three, EINVAL, EINVAL },
        { "clone3, a user namespace", clone_three_users, ENOSPC, ENOSPC },
        { "clone3, a mount namespace", clone_three_mounts, EPERM, ENOSPC },
        { "clone3, of a command", clone_three_of_command, ENOSYS, ENOSYS },
        { "input of a terminal", terminal_input, EPERM, ENOTTY },

        { "modules of bridges", bridges, ENOPKG, OPEN },

        { "name of the domain", domain_name, 0, 0 },
        { "soft limit of descriptors", descriptors_are_few, 0, 0 },
        { "few capabilities", capabilities_are_few, 0, EDOM },
        { "no new privileges", no_new_privs, 0, EDOM },
        { "descriptors", only_given_descriptors, 0, 0 },
        { "first process", first_process_of_its_own_session, 0, 0 },
        { "working directory", at_the_root, 0, 0 },
        { "root is unprivileged", root_is_unprivileged_outside, 0, 0 },
        { "killed like others", no_favour_when_memory_is_short, 0, 0 },
        { "terminals", terminals_are_counted, 0, 0 },
        { "environment", secrets_are_not_in_environ, 0, 0 },
};

/* In the sandbox: one number for each attempt, made in a child so that none spoils the next; those
 * about the first process itself are made by it. */
static void report_one(size_t i)
{
        unsigned char result;

        errno = 0;
        result = attempts[i].fn() < 0 ? (unsigned char) errno : 0;
        if (write(STDOUT_FILENO, &result, 1) != 1)
                _exit(1);
}

static int be_the_first_process(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
                pid_t pid;

                if (attempts[i].fn == first_process_of_its_own_session) {
                        report_one(i);
                        continue;
                }
                pid = fork();
                if (pid == 0) {
                        report_one(i);
                        _exit(0);
                }
                if (pid < 0 || waitpid(pid, NULL, 0) != pid)
                        return 1;
        }
        return 0;
}

/* --- out here --- */

static struct instance_world world;
static struct fake_root usr;

/* Something more in /usr, as far as our own mounts go. */
static void extend_usr(void)
{
        static const struct {
                const char *path;
                mode_t mode;
        } modes[] = {
                { "/upper/hutch-test/key", 0600 },  { "/upper/hutch-test/group-key", 0640 },
                { "/upper/hutch-test/shut", 0700 }, { "/upper/hutch-test/shut/file", 0644 },
                { "/upper/hutch-test/open", 0644 },
        };
        char options[512];

        fake_root_open(&usr);
        fake_root_put(&usr, "/inner/x", "");
        check_i64_eq(unlink(fake_root_path(&usr, "/inner/x")), 0);
        fake_root_put(&usr, "/upper/hutch-test/shut/file", "");
        for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
                if (modes[i].mode != 0700)
                        fake_root_put(&usr, modes[i].path, "secret");
                check_i64_eq(chmod(fake_root_path(&usr, modes[i].path), modes[i].mode), 0);
        }
        (void) snprintf(options, sizeof(options),
                        "lowerdir=/usr,upperdir=%s/upper,workdir=%s/inner", usr.root, usr.root);
        check_i64_eq(mount("overlay", "/usr", "overlay", 0, options), 0);
}

static int open_world(void **state)
{
        scoped(fd_closep) int fd = -EBADF;

        (void) state;
        if (instance_world_possible()) {
                instance_world_open(&world, "/proc/self/exe");
                extend_usr();
                fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
                if (write(fd, "-500", 4) < 0) /* as a service manager sets it */
                        print_message("# this host's root may not lower oom_score_adj\n");
        }
        return 0;
}

static int close_world(void **state)
{
        (void) state;
        if (instance_world_possible()) {
                check_i64_eq(umount2("/usr", MNT_DETACH), 0);
                fake_root_close(&usr);
                instance_world_close(&world);
        }
        return 0;
}

static void check_results(int output, bool bare)
{
        unsigned char is[ARRAY_SIZE(attempts) + 1];
        size_t n = 0;
        ssize_t got;

        while (n < sizeof(is) && (got = read(output, is + n, sizeof(is) - n)) > 0)
                n += (size_t) got;
        check_u64_eq(n, ARRAY_SIZE(attempts));
        for (size_t i = 0; i < n; i++) {
                const int should = bare ? attempts[i].bare : attempts[i].walls;

                check_case(attempts[i].name);
                if (should != OPEN)
                        check_i64_eq(is[i], should);
        }
}

static void test_all_walls(void **state)
{
        struct plan_spec spec = plan_sample_host();
        struct instance_case c;

        (void) state;
        if (!instance_world_possible())
                skip_because("sandboxes need root");
        instance_case_init(&c, &spec);
        if (instance_case_create(&world, &c) < 0)
                fail_msg("%s", c.e.message);
        check_results(c.output, false);
        instance_case_end(&world, &c);
}

/* --- with parts of the isolation left out: no request can do that, so the plan is changed here --- */

static void leave_out(struct plan *p, enum plan_step_kind kind)
{
        size_t n = 0;

        for (size_t i = 0; i < p->n; i++)
                if (p->steps[i].kind != kind)
                        p->steps[n++] = p->steps[i];
        check_true(n < p->n);
        p->n = n;
}

static pid_t start_bare(const struct plan *p, int output)
{
        const struct userns_range range = { p->spec->uid_first, PLAN_UIDS };
        const struct cgroup none = CGROUP_NULL;
        scoped(fd_closep) int userns = -EBADF, cgroupns = -EBADF, netns = -EBADF, pidfd = -EBADF,
                              report = open("/dev/null", O_WRONLY | O_CLOEXEC);
        struct build_order order = { p, { output, output, output, output, report }, -EBADF };
        pid_t pid;

        check_i64_eq(userns_make_sandbox(&range, &none, &userns, &cgroupns), 0);
        check_i64_eq(netns_make(&netns), 0);
        order.netns = netns;
        pid = clone_child(&(struct clone_child){ BUILD_NAMESPACES, -EBADF }, &pidfd);
        check_true(pid >= 0);
        if (pid == 0) {
                struct build_context g = { .data = world.root.root,
                                           .uid_first = p->spec->uid_first,
                                           .host = true,
                                           .userns = userns,
                                           .cgroupns = cgroupns,
                                           .agent = world.ctx.agent };
                struct builder x;

                if (build_prepare(&x, &g) == 0)
                        build_execute(&x, &order);
                _exit(1);
        }
        return pid;
}

static void test_without_capabilities_and_filter(void **state)
{
        scoped(arena_done) struct arena a;
        struct plan_spec spec = plan_sample_host();
        struct zygote none = ZYGOTE_NULL;
        struct plan p;
        struct err e;
        int pipes[2], status;
        pid_t pid;

        (void) state;
        if (!instance_world_possible())
                skip_because("sandboxes need root");
        arena_init(&a, MiB);
        check_i64_eq(plan_make(&spec, &a, &p), 0);
        leave_out(&p, PLAN_CAPS);
        leave_out(&p, PLAN_NO_NEW_PRIVS);
        leave_out(&p, PLAN_SECCOMP);
        check_i64_eq(pipe2(pipes, O_CLOEXEC), 0);
        pid = start_bare(&p, pipes[1]);
        (void) close(pipes[1]);
        check_results(pipes[0], true);
        (void) close(pipes[0]);
        check_i64_eq(waitpid(pid, &status, 0), pid);
        none.uid_first = spec.uid_first;
        check_i64_eq(spawn_destroy(&world.ctx, "a1", &none, &e), 0);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_walls),
                cmocka_unit_test(test_without_capabilities_and_filter),
        };

        if (argc > 1 && strcmp(argv[0], "hutch-execd") == 0)
                return be_the_first_process();
        return cmocka_run_group_tests_name("walls", tests, open_world, close_world);
}
