/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_BOX_WORLD_H
#define HUTCH_TESTS_LIB_BOX_WORLD_H

/*
 * A data folder with the host's image, in a mount namespace of the test's own, and sandboxes in it.
 *
 * Sandboxes run hutch-execd, or the test program itself: its main looks at argv[0].
 */

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/id.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/netns.h"
#include "os/memfd.h"
#include "plan/plan.h"
#include "tests/lib/check.h"
#include "tests/lib/fake_root.h"
#include "tests/lib/plan_sample.h"
#include "warden/box.h"
#include "warden/data.h"
#include "warden/host_image.h"
#include "warden/seed.h"

#define BOX_WORLD_RANGES 4 /* of uids that tests use */

struct box_world {
        struct fake_root root; /* of the data folder */
        char ours[64];         /* control group */
        struct cgroup_tree tree;
        struct seed_ground ground;
};

static inline int box_world_seal(const char *path)
{
        scoped(fd_closep) int from = -EBADF;
        int fd = -EBADF;

        ASSERT(path);
        from = open(path, O_RDONLY | O_CLOEXEC);
        check_true(from >= 0);
        check_i64_eq(memfd_sealed_copy(from, "hutch-execd", &fd), 0);
        return fd;
}

static inline bool box_world_possible(void)
{
        return geteuid() == 0;
}

static inline void box_world_open(struct box_world *w, const char *agent)
{
        scoped(fd_closep) int machine = -EBADF, host = -EBADF;
        char id[ID_HEX_LEN + 1];
        struct ids ids;

        ids_init(&ids);
        ids_hex(&ids, id);
        (void) snprintf(w->ours, sizeof(w->ours), "hutch-test-%s", id);
        check_i64_eq(unshare(CLONE_NEWNS), 0);
        check_i64_eq(mount_make_private(), 0);
        (void) umask(022);
        fake_root_open(&w->root);
        w->ground = (struct seed_ground){ .data_path = w->root.root, .host = true };
        check_i64_eq(data_open(w->root.root, &w->ground.data), 0);
        machine = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        host = openat(w->ground.data, DATA_HOST, O_PATH | O_DIRECTORY | O_CLOEXEC);
        check_i64_eq(host_image_fill(machine, host), 0);
        if (cgroup_tree_open(&w->tree, "", w->ours, 10000) == 0)
                w->ground.tree = &w->tree;
        else
                print_message("# no control groups may be made here\n");
        w->ground.agent = box_world_seal(agent);
}

/* What a test that failed has left: all that is in our group, and then the groups and folders. */
static inline void box_world_sweep(struct box_world *w)
{
        for (uint32_t i = 0; i < BOX_WORLD_RANGES; i++) {
                struct seed seed = SEED_NULL;
                char name[SEED_GROUP_MAX];

                seed.uid_first = PLAN_SAMPLE_BASE + i * PLAN_UIDS;
                seed_group_name(seed.uid_first, name);
                if (!w->ground.tree || cgroup_open(&w->tree, name, &seed.group) < 0)
                        continue;
                check_i64_eq(cgroup_kill(&seed.group), 0);
                while (waitpid(-1, NULL, 0) > 0)
                        ;
                check_i64_eq(seed_remove(&w->ground, &seed), 0);
        }
}

static inline void box_world_close(struct box_world *w)
{
        box_world_sweep(w);
        if (w->ground.tree)
                check_i64_eq(cgroup_tree_remove(&w->tree, "", w->ours), 0);
        (void) fd_close(w->ground.agent);
        (void) fd_close(w->ground.data);
        check_i64_eq(umount2(fake_root_path(&w->root, "/" DATA_DEVICES), 0), 0);
        check_i64_eq(umount2(fake_root_path(&w->root, "/" DATA_MASKS), 0), 0);
        check_i64_eq(umount2(fake_root_path(&w->root, "/" DATA_GROUPS), 0), 0);
        fake_root_close(&w->root);
}

/* --- one sandbox --- */

struct box_case {
        struct plan_spec spec;
        struct seed seed;
        struct err e;
        int output; /* reading end of the agent's own output */
};

static inline void box_case_init(struct box_case *c, const struct plan_spec *spec)
{
        *c = (struct box_case){ .spec = *spec, .seed = SEED_NULL, .output = -EBADF };
        check_i64_eq(plan_spec_check(spec, &plan_sample_uids, &c->e), 0);
}

/* *ret_report is for box_finish. */
static inline int box_case_begin(struct box_world *w, struct box_case *c, int *ret_report)
{
        struct box_parts parts = { .record = -EBADF };
        int pipes[2], r;

        check_i64_eq(netns_make(&parts.netns), 0);
        check_i64_eq(pipe2(pipes, O_CLOEXEC), 0);
        parts.output = pipes[1];
        c->output = pipes[0];
        check_i64_eq(seed_make(&w->ground, c->spec.uid_first, &c->seed), 0);
        check_i64_eq(seed_wait(&c->seed), 0);
        r = box_begin(&w->ground, &c->seed, &c->spec, &parts, ret_report, &c->e);
        (void) close(parts.output);
        (void) close(parts.netns);
        return r;
}

static inline int box_case_create(struct box_world *w, struct box_case *c)
{
        int report, r = box_case_begin(w, c, &report);

        return r == 0 ? box_finish(&w->ground, &c->spec, report, &c->e) : r;
}

/* Nothing is left of it. */
static inline void box_case_end(struct box_world *w, struct box_case *c)
{
        char path[256], group[SEED_GROUP_MAX];

        seed_group_name(c->spec.uid_first, group);
        c->seed.uid_first = c->spec.uid_first;
        check_i64_eq(box_destroy(&w->ground, c->spec.id, &c->seed, &c->e), 0);
        (void) snprintf(path, sizeof(path), "/" DATA_BOXES "/%s", c->spec.id);
        check_i64_eq(access(fake_root_path(&w->root, path), F_OK), -1);
        for (int i = 0; w->ground.tree && i < CGROUP_PART_MAX_; i++)
                if (w->tree.ours[i] >= 0)
                        check_i64_eq(faccessat(w->tree.ours[i], group, F_OK, 0), -1);
        c->output = fd_close(c->output);
}

/* --- talking to its agent --- */

static inline void box_case_ask(struct box_world *w, struct box_case *c, struct str request,
                                struct buf *answer)
{
        scoped(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        char piece[4096];
        ssize_t n;

        (void) snprintf(un.sun_path, sizeof(un.sun_path), "%s/" DATA_BOXES "/%s/agent.sock",
                        w->root.root, c->spec.id);
        check_i64_eq(connect(fd, (struct sockaddr *) &un, sizeof(un)), 0);
        check_i64_eq(write(fd, request.p, request.n), request.n);
        while ((n = read(fd, piece, sizeof(piece))) > 0)
                buf_add(answer, piece, (size_t) n);
        check_i64_eq(n, 0);
}

/* A shell command; the answer is the agent's stream of events. */
static inline void box_case_run(struct box_world *w, struct box_case *c, const char *command,
                                struct buf *answer)
{
        scoped(buf_done) struct buf body, request;

        buf_init(&body, 64 * KiB);
        buf_init(&request, 64 * KiB);
        buf_add_str(&body, STR("{\"command\":"));
        buf_add_quoted(&body, str_from(command));
        buf_add_str(&body, STR("}"));
        buf_addf(&request,
                 "POST /command HTTP/1.1\r\nHost: box\r\nConnection: close\r\n"
                 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                 body.n);
        buf_add_str(&request, buf_str(&body));
        box_case_ask(w, c, buf_str(&request), answer);
}

static inline bool box_answer_has(const struct buf *answer, const char *text)
{
        return memmem(buf_str(answer).p, answer->n, text, strlen(text)) != NULL;
}

#endif
