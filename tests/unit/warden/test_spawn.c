/* SPDX-License-Identifier: Apache-2.0 */

/* Sandboxes of the host's image with the real agent in them, asked over its socket. */

#include "warden/spawn.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "os/clone.h"
#include "tests/lib/instance_world.h"

static struct instance_world world;

#define NEEDS "sandboxes need root"

static int open_world(void **state)
{
        const char *agent = getenv("HUTCH_EXECD");

        (void) state;
        if (!instance_world_possible())
                return 0;
        check_true(agent != NULL);
        instance_world_open(&world, agent);
        return 0;
}

static int close_world(void **state)
{
        (void) state;
        if (instance_world_possible())
                instance_world_close(&world);
        return 0;
}

/* What `command` prints in the sandbox must be in the answer. */
static void check_output(struct instance_case *c, const char *command, const char *text)
{
        scoped(buf_done) struct buf answer;

        buf_init(&answer, MiB);
        check_case(command);
        instance_case_run(&world, c, command, &answer);
        if (!instance_output_has(&answer, text))
                fail_msg("%s: no '%s' in: %.*s", command, text, STR_ARG(buf_str(&answer)));
}

/* --- it lives --- */

static const struct {
        const char *command, *text;
} inside[] = {
        { "echo $((6*7))", "42" },
        { "id -u", "\"0\"" },
        { "hostname", "\"a1\"" },
        { "cat /proc/sys/kernel/hostname", "\"a1\"" },
        { "ps -e | wc -l; echo pid $(cat /proc/1/comm)", "pid hutch-execd" },
        { "echo x > /root/y && stat -c '%u %g' /root/y", "0 0" },
        { "stat -c '%U' /usr/bin/env", "nobody" },
        { "touch /usr/x 2>&1 || true", "Read-only file system" },
        { "touch /workspace/x /tmp/x /var/x /home/x && echo written", "written" },
        { "cat /proc/interrupts /proc/keys | wc -c", "\"0\"" },
        { "ls /sys/class/net | tr '\\n' ,", "lo," },
        { "ls /sys/firmware | wc -l", "\"0\"" },
        { "echo 1 > /proc/sys/kernel/panic || echo refused", "refused" },
        { "echo 0 > /proc/1/oom_score_adj || echo refused", "refused" },
        { "sed -n 's/^CapEff:.//p' /proc/self/status", "00000000800405fb" },
        { "grep NoNewPrivs /proc/self/status", "NoNewPrivs:\\t1" },
        { "grep Seccomp: /proc/self/status", "Seccomp:\\t2" },
        { "cat /proc/self/uid_map", "268435456      65536" },
        { "cat /proc/self/cgroup | grep -v ':/$' | grep -v ':/commands/[0-9]*$' | grep -c / || echo own",
          "own" },
        { "cut -d' ' -f5 /proc/self/mountinfo | sort | head -2 | tr '\\n' ,", "/,/dev," },
        { "tty=$(script -qec 'tty' /dev/null </dev/null); echo \"$tty\"", "/dev/pts/0" },
        { "grep -c -e stage -e host -e empty /proc/self/mountinfo || echo gone", "gone" },
        { "echo data > /dev/shm/x && cat /dev/shm/x", "data" },
        { "head -c 3 /dev/zero | wc -c; : > /dev/null", "\"3\"" },
        { "ls -d /dev/mem /dev/kmsg /dev/vda /dev/fuse 2>/dev/null | wc -l", "\"0\"" },
        { "mknod /tmp/n c 1 3 || echo refused", "refused" },
        { "python3 -c 'print(sum(range(10)))'", "45" },
        { "ls /etc/shadow /etc/ssh /etc/machine-id 2>/dev/null | wc -l", "\"0\"" },
        { "ls /", "workspace" },
};

static void test_create_to_destroy(void **state)
{
        scoped(buf_done) struct buf answer;
        struct plan_spec spec = plan_sample_host();
        struct instance_case c;
        char command[256];
        int status;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        buf_init(&answer, MiB);
        instance_case_init(&c, &spec);
        check_i64_eq(instance_case_create(&world, &c), 0);
        instance_case_request(&world, &c,
                              STR("GET /ping HTTP/1.1\r\nHost: box\r\nConnection: close\r\n\r\n"),
                              &answer);
        check_true(instance_output_has(&answer, "HTTP/1.1 200"));
        for (size_t i = 0; i < ARRAY_SIZE(inside); i++)
                check_output(&c, inside[i].command, inside[i].text);
        (void) snprintf(command, sizeof(command),
                        "cat /proc/self/mountinfo | grep -c %s || echo untold", world.root.root);
        check_output(&c, command, "untold");
        check_i64_eq(waitpid(c.zygote.pid, &status, WNOHANG), 0);
        instance_case_end(&world, &c);
}

/* Signals to the agent that carry no sender, because there is no room for it left: all that the uid may
 * have queued are queued before. Once through a descriptor of its directory in /proc, once as the owner
 * of a socket. */
#define SENDERLESS                                                                    \
        "import ctypes, fcntl, os, signal, socket, struct\n"                          \
        "c = ctypes.CDLL(None)\n"                                                     \
        "signal.pthread_sigmask(signal.SIG_BLOCK, {40})\n"                            \
        "n = 0\n"                                                                     \
        "while c.sigqueue(os.getpid(), 40, None) == 0: n += 1\n"                      \
        "fd = os.open('/proc/1', os.O_RDONLY | os.O_DIRECTORY)\n"                     \
        "r = c.syscall(424, fd, 15, struct.pack('iii', 15, 0, -1) + bytes(116), 0)\n" \
        "a, b = socket.socketpair()\n"                                                \
        "fcntl.fcntl(a, fcntl.F_SETOWN, 1)\n"                                         \
        "fcntl.fcntl(a, fcntl.F_SETSIG, 2)\n"                                         \
        "fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)\n"                 \
        "b.send(b'x')\n"                                                              \
        "print('sent', n > 1000, r)\n"

/* A package and a mirror of it on the loopback; what is not below /usr can be installed. */
#define MIRROR                                                                                  \
        "set -e; mkdir -p /tmp/p/DEBIAN /tmp/p/opt/greeting /tmp/m; cd /tmp; "                  \
        "printf 'Package: greeting\\nVersion: 1\\nArchitecture: all\\nMaintainer: m\\n"         \
        "Description: d\\n' > p/DEBIAN/control; echo 'hello from opt' > p/opt/greeting/text; "  \
        "dpkg-deb -b p m/greeting_1_all.deb > /dev/null; cd m; "                                \
        "{ cat ../p/DEBIAN/control; echo Filename: ./greeting_1_all.deb; "                      \
        "echo Size: $(stat -c %s greeting_1_all.deb); "                                         \
        "echo SHA256: $(sha256sum greeting_1_all.deb | cut -d' ' -f1); } > Packages; "          \
        "python3 -c 'import functools, http.server as h, os\n"                                  \
        "s = h.ThreadingHTTPServer((\"127.0.0.1\", 8099), h.SimpleHTTPRequestHandler)\n"        \
        "os.fork() and os._exit(0)\n"                                                           \
        "s.serve_forever()' > /dev/null 2>&1; "                                                 \
        "echo 'deb [trusted=yes] http://127.0.0.1:8099/ ./' > /etc/apt/sources.list.d/m.list; " \
        "cd /tmp; apt-get -qq update && apt-get -qq download greeting && ls greeting*; "        \
        "apt-get -qq -y install greeting > /dev/null 2>&1; cat /opt/greeting/text"

/* --- what people do in it --- */

static const struct {
        const char *program; /* that must be on the host */
        const char *command, *text;
} uses[] = {
        { "gcc", "cd /tmp && echo 'int main(){return 42;}' > a.c && gcc a.c -o a; ./a; echo rc $?",
          "rc 42" },
        { "git",
          "git init -q /tmp/r && cd /tmp/r && git -c user.name=n -c user.email=e commit "
          "-q --allow-empty -m m && git log --format=%an",
          "\"n\"" },
        { "node", "node -e 'console.log(6 * 7)'", "42" },
        { "useradd", "useradd -m bob && su bob -c 'id -un'", "bob" },
        { "apt-get", "apt-get check && echo checked", "checked" },
        { "apt-get", MIRROR, "greeting_1_all.deb" },
        { "apt-get", "cat /opt/greeting/text", "hello from opt" },
        { "ping", "ping -c 1 -W 5 127.0.0.1", "1 received" },
        { "python3",
          "python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, "
          "socket.IPPROTO_ICMP); s.sendto(bytes.fromhex(\"0800f7ff00000000\"), (\"127.0.0.1\", 0)); "
          "print(\"echo\", s.recv(64)[0])'",
          "echo 0" },
        { "getent", "getent hosts $(hostname)", "127.0.1.1" },
        { "getent", "cat /etc/hostname; getent passwd root user", "root:x:0:0" },
        { "update-alternatives", "ls /etc/alternatives | wc -l | grep -v '^0$' && echo some",
          "some" },
        { "ldconfig", "ldconfig -p | grep -c libc.so.6", "1" },
        { "make",
          "cd /tmp && { echo all: $(seq -f t%g 200); printf 't%%:\\n\\ttouch $@\\n'; } > "
          "Makefile && make -sj50 all && ls t* | wc -l",
          "\"200\"" },
        { "python3",
          "python3 -c 'import socket; s = socket.create_server((\"\", 80)); "
          "socket.create_connection((\"127.0.0.1\", 80)); print(s.accept()[1][0])'",
          "127.0.0.1" },
        { "python3", "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-8]))'",
          "[8]" },
        { "strace", "strace -f -e trace=none true && echo traced", "traced" },
        { "gdb", "gdb -p 1 -batch 2>&1", "ptrace: Operation not permitted" },
        { "ip", "ip link set lo down 2>&1", "not permitted" },
        { "sh", "kill -9 1; kill -TERM 1; kill -9 -1; true", "" },
        { "sh", "cat /proc/self/oom_score_adj", "\"300\"" },
        { "python3", "python3 -c \"" SENDERLESS "\"", "sent True 0" },
        { "sh", "echo the agent lives", "the agent lives" },
        { "sh", "cat /proc/1/environ /proc/1/maps 2>&1", "Permission denied" },
};

static bool machine_has(const char *program)
{
        static const char *const dirs[] = { "/usr/bin", "/usr/sbin" };
        char path[128];

        for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", dirs[i], program);
                if (access(path, X_OK) == 0)
                        return true;
        }
        return false;
}

static void test_what_people_do(void **state)
{
        struct plan_spec spec = plan_sample_host();
        struct instance_case c;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        instance_case_init(&c, &spec);
        check_i64_eq(instance_case_create(&world, &c), 0);
        for (size_t i = 0; i < ARRAY_SIZE(uses); i++)
                if (machine_has(uses[i].program))
                        check_output(&c, uses[i].command, uses[i].text);
                else
                        print_message("# this host has no %s\n", uses[i].program);
        instance_case_end(&world, &c);
}

/* --- variations --- */

static void test_two_see_nothing_of_each_other(void **state)
{
        struct plan_spec first = plan_sample_host(), second = plan_sample_host();
        struct instance_case a, b;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        second.id = second.hostname = "b2";
        second.uid_first += PLAN_UIDS;
        instance_case_init(&a, &first);
        instance_case_init(&b, &second);
        check_i64_eq(instance_case_create(&world, &a), 0);
        check_i64_eq(instance_case_create(&world, &b), 0);
        check_output(&a, "echo mine > /tmp/f; sleep 60 >/dev/null 2>&1 & echo ok", "ok");
        check_output(&b, "ls /tmp/f 2>/dev/null | wc -l", "\"0\"");
        check_output(&b, "cat /proc/[0-9]*/comm | grep -c '^sleep$' || echo none", "none");
        instance_case_end(&world, &b);
        check_output(&a, "cat /tmp/f", "mine");
        instance_case_end(&world, &a);
}

/* Begun together, finished in another order. */
static void test_many_at_a_time(void **state)
{
        static const char *const ids[INSTANCE_WORLD_RANGES] = { "m0", "m1", "m2", "m3" };
        struct instance_case cases[INSTANCE_WORLD_RANGES];
        int reports[INSTANCE_WORLD_RANGES];

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        for (uint32_t i = 0; i < INSTANCE_WORLD_RANGES; i++) {
                struct plan_spec spec = plan_sample_host();

                spec.id = spec.hostname = ids[i];
                spec.uid_first += i * PLAN_UIDS;
                instance_case_init(&cases[i], &spec);
                check_i64_eq(instance_case_begin(&world, &cases[i], &reports[i]), 0);
        }
        for (uint32_t i = INSTANCE_WORLD_RANGES; i-- > 0;)
                check_i64_eq(spawn_finish(&cases[i].spec, reports[i], &cases[i].e), 0);
        for (uint32_t i = 0; i < INSTANCE_WORLD_RANGES; i++) {
                check_output(&cases[i], "hostname", ids[i]);
                instance_case_end(&world, &cases[i]);
        }
}

static void test_the_same_id_twice(void **state)
{
        struct plan_spec spec = plan_sample_host(), again = spec;
        struct instance_case a, b;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        again.uid_first += PLAN_UIDS;
        instance_case_init(&a, &spec);
        instance_case_init(&b, &again);
        check_i64_eq(instance_case_create(&world, &a), 0);
        check_i64_eq(instance_case_create(&world, &b), ERR_RETURN(ERR_EXISTS));
        check_output(&a, "echo still here", "still here");
        instance_case_end(&world, &a);
        check_i64_eq(zygote_remove(&world.ctx, &b.zygote), 0);
        (void) fd_close(b.output);
}

static void test_limits(void **state)
{
        scoped(buf_done) struct buf answer = { 0 };
        struct plan_spec spec = plan_sample_host();
        struct instance_case c;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        if (!world.ctx.tree)
                skip_because("no cgroups may be made here");
        spec.pids = 20;
        spec.memory = 64 * MiB;
        spec.cpu_millis = 500;
        buf_init(&answer, MiB);
        instance_case_init(&c, &spec);
        check_i64_eq(instance_case_create(&world, &c), 0);
        check_case("metrics are the sandbox's");
        instance_case_request(
                &world, &c, STR("GET /metrics HTTP/1.1\r\nHost: box\r\nConnection: close\r\n\r\n"),
                &answer);
        check_true(instance_output_has(&answer, "\"mem_total_mib\":64,"));
        check_true(instance_output_has(&answer, "\"cpu_count\":0.5,"));
        check_output(&c,
                     "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max",
                     "67108864");
        check_output(&c,
                     "echo 1 > $(ls /sys/fs/cgroup/memory/cgroup.procs /sys/fs/cgroup/cgroup.procs "
                     "2> /dev/null) 2>&1",
                     "Read-only file system");
        check_output(&c, "python3 -c 'x = bytearray(200 << 20)'; echo rc $?", "OOM_KILLED");
        check_output(&c, "python3 -c 'x = bytearray(200 << 20)'; echo rc $?", "\"exitCode\":137");
        check_output(&c, "echo still here", "still here");
        check_output(&c,
                     "python3 -c 'import os,time\nfor i in range(40):\n if not os.fork(): "
                     "time.sleep(60)' 2>&1",
                     "Resource temporarily unavailable");
        instance_case_end(&world, &c);
}

/* Processes that want to stay: daemons, stopped ones, ones that ignore what they are sent. */
static void test_destroy_ends_everything(void **state)
{
        struct plan_spec spec = plan_sample_host();
        struct instance_case c;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        instance_case_init(&c, &spec);
        check_i64_eq(instance_case_create(&world, &c), 0);
        check_output(&c,
                     "setsid sh -c 'trap \"\" TERM INT HUP; while :; do sleep 1; done' "
                     ">/dev/null 2>&1 & sh -c 'kill -STOP $$' & "
                     "mkdir -p /root/$(printf 'd/%.0s' $(seq 300)); echo ready",
                     "ready");
        instance_case_end(&world, &c);
}

/* --- nothing is left --- */

static size_t count_entries(const char *path)
{
        DIR *dir = opendir(path);
        size_t n = 0;

        check_true(dir != NULL);
        while (readdir(dir))
                n++;
        (void) closedir(dir);
        return n;
}

static size_t count_mounts(void)
{
        FILE *f = fopen("/proc/self/mountinfo", "re");
        size_t n = 0;

        check_true(f != NULL);
        for (int c; (c = fgetc(f)) != EOF;)
                n += c == '\n';
        (void) fclose(f);
        return n;
}

static void test_cycles_leave_nothing(void **state)
{
        const size_t fds = count_entries("/proc/self/fd"), mounts = count_mounts();

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        for (uint32_t i = 0; i < 20; i++) {
                struct plan_spec spec = plan_sample_host();
                struct instance_case c;

                spec.uid_first += i % INSTANCE_WORLD_RANGES * PLAN_UIDS;
                instance_case_init(&c, &spec);
                check_i64_eq(instance_case_create(&world, &c), 0);
                instance_case_end(&world, &c);
        }
        check_u64_eq(count_entries("/proc/self/fd"), fds);
        check_true(count_mounts() <= mounts);         /* others' go with their directories */
        check_i64_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child */
}

/* --- images that lie about their directories --- */

static const struct {
        const char *name;
        const char *link, *target; /* what is where a directory should be; NULL: a file */
        const char *step;
        bool refused;
} images[] = {
        { "nothing special", "some", "/etc", "", false },
        { "proc is a link", "proc", "/etc", "mount proc /proc", true },
        { "proc is a relative link", "proc", "../../..", "mount proc /proc", true },
        { "sys is a link", "sys", "/proc", "mount sysfs /sys", true },
        { "dev is a link", "dev", "/tmp", "tree devices /dev", true },
        { "proc is a file", "proc", NULL, "mount proc /proc", true },
};

static void make_layer(const char *link, const char *target)
{
        char path[128];

        fake_root_put(&world.root, "/" DATA_LAYERS "/img/etc/passwd", "root:x:0:0::/:/bin/sh\n");
        (void) snprintf(path, sizeof(path), "/" DATA_LAYERS "/img/%s", link);
        if (target)
                check_i64_eq(symlink(target, fake_root_path(&world.root, path)), 0);
        else
                fake_root_put(&world.root, path, "");
}

static void remove_layer(const char *link)
{
        char path[128];

        (void) snprintf(path, sizeof(path), "/" DATA_LAYERS "/img/%s", link);
        check_i64_eq(unlink(fake_root_path(&world.root, path)), 0);
}

static void test_images_that_lie(void **state)
{
        const struct plan_list layers = PLAN_LIST("img");

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        for (size_t i = 0; i < ARRAY_SIZE(images); i++) {
                struct plan_spec spec = plan_sample_host();
                struct instance_case c;
                int r;

                check_case(images[i].name);
                spec.image = PLAN_IMAGE_LAYERS;
                spec.layers = layers;
                make_layer(images[i].link, images[i].target);
                instance_case_init(&c, &spec);
                r = instance_case_create(&world, &c);
                if (images[i].refused) {
                        check_true(r < 0);
                        if (!strstr(c.e.message, images[i].step))
                                fail_msg("%s: %s", images[i].name, c.e.message);
                } else if (r < 0 && !strstr(c.e.message, ", exec")) {
                        /* Under a sanitizer the agent wants libraries, which this image lacks. */
                        fail_msg("%s: %s", images[i].name, c.e.message);
                }
                instance_case_end(&world, &c);
                remove_layer(images[i].link);
        }
}

static void test_a_failure_leaves_nothing(void **state)
{
        const int agent = world.ctx.agent;
        struct plan_spec spec = plan_sample_host();
        struct instance_case c;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        world.ctx.agent = world.ctx.data; /* a directory is no program */
        instance_case_init(&c, &spec);
        check_true(instance_case_create(&world, &c) < 0);
        world.ctx.agent = agent;
        check_true(strstr(c.e.message, ", exec") != NULL);
        check_true(strstr(c.e.message, "create sandbox 'a1'") != NULL);
        instance_case_end(&world, &c); /* finds nothing to do, and nothing left */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_create_to_destroy),
                cmocka_unit_test(test_what_people_do),
                cmocka_unit_test(test_two_see_nothing_of_each_other),
                cmocka_unit_test(test_many_at_a_time),
                cmocka_unit_test(test_the_same_id_twice),
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_destroy_ends_everything),
                cmocka_unit_test(test_cycles_leave_nothing),
                cmocka_unit_test(test_images_that_lie),
                cmocka_unit_test(test_a_failure_leaves_nothing),
        };

        return cmocka_run_group_tests_name("box", tests, open_world, close_world);
}
