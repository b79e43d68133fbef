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
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "os/caps.h"
#include "os/clone.h"
#include "os/netns.h"
#include "os/userns.h"
#include "tests/lib/box_world.h"

#define ANY (-1) /* fails, no matter how */

typedef long attempt_fn(void); /* negative with errno: refused */

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

static long sysrq(void)
{
        return write_to("/proc/sysrq-trigger");
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
        return write_to("/sys/kernel/uevent_helper");
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

static long terminal_input(void)
{
        return syscall(SYS_ioctl, 0, TIOCSTI | 1UL << 32, "x");
}

/* --- not attempts but states: 0 if it is as it should be --- */

static long as_it_should(bool is)
{
        errno = EDOM;
        return is ? 0 : -1;
}

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

static long root_is_nobody_outside(void)
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
        { "host name", set_hostname, EPERM, EPERM },
        { "link down", link_down, EPERM, EPERM },
        { "raw socket", raw_socket, EPERM, EPERM },
        { "packet socket", packet_socket, EAFNOSUPPORT, EPERM },
        { "device", make_device, EPERM, EPERM },
        { "clock", set_clock, EPERM, EPERM },
        { "core_pattern", core_pattern, ANY, ANY },
        { "sysrq", sysrq, ANY, ANY },
        { "settings of the agent", own_limits_of_agent, EROFS, EROFS },
        { "program of the agent", agents_program, ANY, ANY },
        { "uevent_helper", uevent_helper, ANY, ANY },
        { "forwarding", forwarding, ANY, ANY },
        { "file by handle", handle, EPERM, ANY },
        { "kernel module", load_module, EPERM, ANY },
        { "kernel log", kernel_log, EPERM, EPERM },
        { "swap", swap, EPERM, EPERM },
        { "own mounts, remount /usr", own_mounts_remount, EPERM, EPERM },
        { "own mounts, mount_setattr", own_mounts_setattr, EPERM, EPERM },
        { "own mounts, unmount a mask", own_mounts_umount, EPERM, EINVAL },
        { "own mounts, new proc", own_mounts_proc, EPERM, EPERM },
        { "own mounts, new sysfs", own_mounts_sysfs, EPERM, EPERM },

        /* These are the other walls' alone. */
        { "user namespace", new_users, EPERM, 0 },
        { "io_uring", io_ring, EPERM, ANY },
        { "clone3", clone_three, ENOSYS, EINVAL },
        { "input of a terminal", terminal_input, EPERM, ANY },

        { "few capabilities", capabilities_are_few, 0, EDOM },
        { "no new privileges", no_new_privs, 0, EDOM },
        { "descriptors", only_given_descriptors, 0, 0 },
        { "first process", first_process_of_its_own_session, 0, 0 },
        { "working folder", at_the_root, 0, 0 },
        { "root is nobody", root_is_nobody_outside, 0, 0 },
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

static struct box_world world;

static int open_world(void **state)
{
        scoped(fd_closep) int fd = -EBADF;

        (void) state;
        if (box_world_possible()) {
                box_world_open(&world, "/proc/self/exe");
                fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
                if (write(fd, "-500", 4) < 0) /* as a service manager sets it */
                        print_message("# this machine's root may not lower oom_score_adj\n");
        }
        return 0;
}

static int close_world(void **state)
{
        (void) state;
        if (box_world_possible())
                box_world_close(&world);
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
                if (should == ANY)
                        check_true(is[i] != 0);
                else
                        check_i64_eq(is[i], should);
        }
}

static void test_all_walls(void **state)
{
        struct plan_spec spec = plan_sample_host();
        struct box_case c;

        (void) state;
        if (!box_world_possible())
                skip_because("sandboxes need root");
        box_case_init(&c, &spec);
        if (box_case_create(&world, &c) < 0)
                fail_msg("%s", c.e.message);
        check_results(c.output, false);
        box_case_end(&world, &c);
}

/* --- without some of the walls: nobody can ask for that, so the plan is changed by hand --- */

static void leave_out(struct plan *p, enum plan_step_kind kind)
{
        size_t n = 0;

        for (size_t i = 0; i < p->n; i++)
                if (p->steps[i].kind != kind)
                        p->steps[n++] = p->steps[i];
        check_true(n < p->n);
        p->n = n;
}

static void make_folders(const struct plan_spec *spec)
{
        fake_root_put(&world.root, "/" DATA_BOXES "/a1/work/x", "");
        fake_root_put(&world.root, "/" DATA_BOXES "/a1/upper/x", "");
        check_i64_eq(unlink(fake_root_path(&world.root, "/" DATA_BOXES "/a1/work/x")), 0);
        check_i64_eq(chown(fake_root_path(&world.root, "/" DATA_BOXES "/a1/upper"), spec->uid_first,
                           spec->uid_first),
                     0);
}

static pid_t start_bare(const struct plan *p, int output)
{
        const struct userns_range range = { p->spec->uid_first, PLAN_UIDS };
        scoped(fd_closep) int userns = -EBADF, netns = -EBADF, pidfd = -EBADF;
        struct build_order order = { p, { output, output, output, output, output }, output };
        pid_t pid;

        check_i64_eq(userns_make(&range, &userns), 0);
        check_i64_eq(netns_make(&netns), 0);
        pid = clone_child(&(struct clone_child){ BUILD_NAMESPACES, -EBADF }, &pidfd);
        check_true(pid >= 0);
        if (pid == 0) {
                struct build_ground g = { world.root.root, NULL,  NULL,
                                          userns,          netns, world.ground.agent };
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
        struct seed none = SEED_NULL;
        struct plan p;
        struct err e;
        int pipes[2], status;
        pid_t pid;

        (void) state;
        if (!box_world_possible())
                skip_because("sandboxes need root");
        arena_init(&a, MiB);
        check_i64_eq(plan_make(&spec, &a, &p), 0);
        leave_out(&p, PLAN_CAPS);
        leave_out(&p, PLAN_NO_PRIVS);
        leave_out(&p, PLAN_FILTER);
        make_folders(&spec);
        check_i64_eq(pipe2(pipes, O_CLOEXEC), 0);
        pid = start_bare(&p, pipes[1]);
        (void) close(pipes[1]);
        check_results(pipes[0], true);
        (void) close(pipes[0]);
        check_i64_eq(waitpid(pid, &status, 0), pid);
        none.uid_first = spec.uid_first;
        check_i64_eq(box_destroy(&world.ground, "a1", &none, &e), 0);
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
