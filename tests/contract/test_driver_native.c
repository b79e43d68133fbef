/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/id.h"
#include "os/cgroup.h"
#include "os/fd.h"
#include "os/virtual_file.h"
#include "tests/contract/driver_contract.h"
#include "tests/lib/check.h"
#include "tests/lib/fake_root.h"
#include "warden/data.h"
#include "warden/state.h"

/*
 * The warden of each installation is a process of its own, and so is that of one which only comes
 * along in a test. As the launcher does, we hold both ends of its socket.
 */

#define WARDENS_MAX 4
#define UIDS_EACH   (64 * PLAN_UIDS)
#define UIDS_BASE   (0x40000000U)

struct warden_process {
        char installation[ID_HEX_LEN + 1];
        char name[64]; /* for it in here: the same test may run twice on a host */
        char dir[128];
        char uids[32];
        int ours, theirs;
        pid_t pid;
};

static struct warden_process wardens[WARDENS_MAX];
static size_t n_wardens;
static struct fake_root root; /* of their data directories */

/* --- processes --- */

static void start(struct warden_process *p)
{
        const char *program = getenv("HUTCH_WARDEN"), *agent = getenv("HUTCH_EXECD");
        char fd[16];

        check_true(program && agent);
        if (!program || !agent)
                return;
        (void) snprintf(fd, sizeof(fd), "%d", p->theirs);
        p->pid = fork();
        check_true(p->pid >= 0);
        if (p->pid > 0)
                return;
        (void) fcntl(p->theirs, F_SETFD, 0);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) execl(program, program, "--socket-fd", fd, "--data", p->dir, "--agent", agent,
                     "--installation", p->name, "--uids", p->uids, "--zygotes", "1", "--no-private",
                     "--log-level", "error", NULL);
        _exit(127);
}

static struct warden_process *warden_of(struct str installation)
{
        struct warden_process *p = wardens;
        char random[ID_HEX_LEN + 1];
        struct ids ids;
        int pair[2];

        for (; p < wardens + n_wardens; p++)
                if (str_eq(str_from(p->installation), installation))
                        return p;
        check_true(n_wardens < WARDENS_MAX);
        (void) snprintf(p->installation, sizeof(p->installation), "%.*s", STR_ARG(installation));
        ids_init(&ids);
        ids_hex(&ids, random);
        (void) snprintf(p->name, sizeof(p->name), "test-%s", random);
        (void) snprintf(p->dir, sizeof(p->dir), "%s/%zu", root.root, n_wardens);
        (void) snprintf(p->uids, sizeof(p->uids), "%u:%u",
                        UIDS_BASE + (unsigned) n_wardens * UIDS_EACH, UIDS_EACH);
        check_i64_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        p->ours = pair[0];
        p->theirs = pair[1];
        n_wardens++;
        start(p);
        return p;
}

static void remove_groups(const struct warden_process *p)
{
        struct cgroup_tree tree;
        char group[80];

        (void) snprintf(group, sizeof(group), "hutch-%s", p->name);
        if (cgroup_tree_open(&tree, "", group, CGROUP_KEEP) == 0)
                check_i64_eq(cgroup_tree_remove(&tree, "", group), 0);
}

static void stop(struct warden_process *p)
{
        int status = -1;

        check_i64_eq(kill(p->pid, SIGTERM), 0);
        check_i64_eq(waitpid(p->pid, &status, 0), p->pid);
        check_i64_eq(status, 0);
        remove_groups(p);
        (void) close(p->ours);
        (void) close(p->theirs);
}

/* --- the maker --- */

static bool is_empty(const char *dir, const char *name)
{
        char path[256];
        size_t n = 0;
        DIR *d;

        (void) snprintf(path, sizeof(path), "%s/%s", dir, name);
        d = opendir(path);
        check_true(d != NULL);
        while (readdir(d))
                n++;
        (void) closedir(d);
        return n == 2;
}

/* The wardens go on: their first task, making the image, takes longer than a test. */
static void end(struct driver_world *w)
{
        (void) w;
        for (size_t i = 0; i < n_wardens; i++)
                check_true(is_empty(wardens[i].dir, DATA_SANDBOXES));
}

static int open_native(struct driver_world *w, const struct driver_setup *setup,
                       struct driver **ret, struct err *e)
{
        const struct warden_process *p = warden_of(setup->installation);
        struct driver_setup own = *setup;

        own.warden = fcntl(p->ours, F_DUPFD_CLOEXEC, 3);
        own.network = "none";
        return driver_native_open(&own, ret, e);
}

static void path_of(struct str id, const char *name, char ret[static 256])
{
        (void) snprintf(ret, 256, "%s/" DATA_SANDBOXES "/%.*s/%s", wardens[0].dir, STR_ARG(id),
                        name);
}

/* Out of the warden's note, which it would not read itself beside a record that was spoiled: behind a
 * magic number and a text, see warden/state.c. */
static pid_t agent_of(struct str id)
{
        unsigned char note[256];
        const size_t at = 4 + 4 + STATE_BOOT_LEN;
        char path[256];
        ssize_t n;
        int fd;

        path_of(id, "state", path);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = read(fd, note, sizeof(note));
        (void) close(fd);
        check_true(n > (ssize_t) at + 4);
        return (pid_t) (note[at] | note[at + 1] << 8 | note[at + 2] << 16 | note[at + 3] << 24);
}

static bool is_entrypoint(const char *pid, const char *namespace)
{
        char path[64], text[256], ns[64] = "";

        (void) snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", pid);
        if (readlink(path, ns, sizeof(ns) - 1) < 0 || strcmp(ns, namespace) != 0)
                return false;
        (void) snprintf(path, sizeof(path), "/proc/%.20s/cmdline", pid);
        return virtual_file_read(path, text, sizeof(text)) > 0 && strcmp(text, "sh") == 0;
}

/* The one shell in there. */
static pid_t entrypoint_of(struct str id)
{
        char path[64], namespace[64] = "";
        pid_t found = 0;
        DIR *d = opendir("/proc");

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int) agent_of(id));
        check_true(readlink(path, namespace, sizeof(namespace) - 1) > 0);
        check_true(d != NULL);
        for (struct dirent *entry; (entry = readdir(d)) && found == 0;)
                if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9'
                    && is_entrypoint(entry->d_name, namespace))
                        found = (pid_t) strtol(entry->d_name, NULL, 10);
        (void) closedir(d);
        check_true(found > 1);
        return found;
}

/* The entrypoint ends with 0, and everything with it; or the agent is killed. */
static void kill_container(struct driver_world *w, struct str id, int status)
{
        char path[256];

        path_of(id, "upper/workspace/.ready", path);
        driver_world_until(w, access(path, F_OK) == 0);
        if (status == RUNTIME_ENDED)
                check_i64_eq(kill(entrypoint_of(id), SIGTERM), 0);
        else
                check_i64_eq(kill(agent_of(id), SIGKILL), 0);
}

static void spoil(struct driver_world *w, struct str id)
{
        char path[256];

        (void) w;
        path_of(id, "record", path);
        check_i64_eq(truncate(path, 100), 0);
}

static bool can_make_sandboxes(void)
{
        int status = -1;
        pid_t pid = fork();

        if (pid == 0)
                _exit(geteuid() == 0 && unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET) == 0
                              ? 0
                              : 1);
        return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(void)
{
        static const struct driver_maker maker = {
                .name = "native",
                .end = end,
                .open = open_native,
                .kill = kill_container,
                .spoil = spoil,
                .image = "host",
                .bad_entrypoint = "/no/such/program",
                .many = 12,
                .real_agent = true,
        };

        int r;

        if (!can_make_sandboxes()) {
                puts("1..0 # SKIP root is needed, and leave to make namespaces");
                return 0;
        }
        /* Seeds, janitors and sandboxes of a warden that ends become ours, and have to be reaped. */
        check_i64_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        fake_root_open(&root);
        r = driver_contract_run(&maker);
        while (n_wardens > 0)
                stop(&wardens[--n_wardens]);
        while (waitpid(-1, NULL, 0) > 0)
                ;
        fake_root_close(&root);
        return r;
}
