/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_INSTANCE_WORLD_H
#define HUTCH_TESTS_LIB_INSTANCE_WORLD_H

/*
 * A data directory with the host's image, in a mount namespace of the test's own, and sandboxes in it.
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
#include "warden/spawn.h"
#include "warden/data.h"
#include "warden/host_image.h"
#include "warden/zygote.h"

#define INSTANCE_WORLD_RANGES 4 /* of uids that tests use */

struct instance_world {
        struct fake_root root; /* of the data directory */
        char ours[64];         /* cgroup */
        struct cgroup_tree tree;
        struct host_context ctx;
};

static inline int instance_world_seal(const char *path)
{
        scoped(fd_closep) int from = -EBADF;
        int fd = -EBADF;

        ASSERT(path);
        from = open(path, O_RDONLY | O_CLOEXEC);
        check_true(from >= 0);
        check_i64_eq(memfd_sealed_copy(from, "hutch-execd", &fd), 0);
        return fd;
}

static inline bool instance_world_possible(void)
{
        return geteuid() == 0;
}

static inline void instance_world_open(struct instance_world *w, const char *agent)
{
        scoped(fd_closep) int root_fd = -EBADF, image_fd = -EBADF;
        char id[ID_HEX_LEN + 1];
        struct ids ids;

        ids_init(&ids);
        ids_hex(&ids, id);
        (void) snprintf(w->ours, sizeof(w->ours), "hutch-test-%s", id);
        check_i64_eq(unshare(CLONE_NEWNS), 0);
        check_i64_eq(mount_make_private(), 0);
        (void) umask(022);
        fake_root_open(&w->root);
        w->ctx = (struct host_context){ .data_path = w->root.root, .host = true };
        check_i64_eq(data_open(w->root.root, &w->ctx.data), 0);
        root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        image_fd = openat(w->ctx.data, DATA_HOST, O_PATH | O_DIRECTORY | O_CLOEXEC);
        check_i64_eq(host_image_fill(root_fd, image_fd), 0);
        if (cgroup_tree_open(&w->tree, "", w->ours, 10000) == 0)
                w->ctx.tree = &w->tree;
        else
                print_message("# no cgroups may be made here\n");
        w->ctx.agent = instance_world_seal(agent);
}

/* What a test that failed has left: all that is in our group, and then the groups and directories. */
static inline void instance_world_sweep(struct instance_world *w)
{
        for (uint32_t i = 0; i < INSTANCE_WORLD_RANGES; i++) {
                struct zygote zygote = ZYGOTE_NULL;
                char name[ZYGOTE_CGROUP_MAX];

                zygote.uid_first = PLAN_SAMPLE_BASE + i * PLAN_UIDS;
                zygote_cgroup_name(zygote.uid_first, name);
                if (!w->ctx.tree || cgroup_open(&w->tree, name, &zygote.group) < 0)
                        continue;
                check_i64_eq(cgroup_kill(&zygote.group), 0);
                while (waitpid(-1, NULL, 0) > 0)
                        ;
                check_i64_eq(zygote_remove(&w->ctx, &zygote), 0);
        }
}

static inline void instance_world_close(struct instance_world *w)
{
        instance_world_sweep(w);
        if (w->ctx.tree)
                check_i64_eq(cgroup_tree_remove(&w->tree, "", w->ours), 0);
        (void) fd_close(w->ctx.agent);
        (void) fd_close(w->ctx.data);
        check_i64_eq(umount2(fake_root_path(&w->root, "/" DATA_MASKS), 0), 0);
        check_i64_eq(umount2(fake_root_path(&w->root, "/" DATA_GROUPS), 0), 0);
        check_i64_eq(umount2(fake_root_path(&w->root, "/" DATA_TREES), 0), 0);
        fake_root_close(&w->root);
}

/* --- one sandbox --- */

struct instance_case {
        struct plan_spec spec;
        struct zygote zygote;
        struct err e;
        int output; /* reading end of the agent's own output */
};

static inline void instance_case_init(struct instance_case *c, const struct plan_spec *spec)
{
        *c = (struct instance_case){ .spec = *spec, .zygote = ZYGOTE_NULL, .output = -EBADF };
        check_i64_eq(plan_spec_check(spec, &c->e), 0);
}

/* Its message, as hutchd sends it; in `b`. */
static inline struct str instance_world_encode(const struct plan_spec *spec, struct buf *b)
{
        struct err e;

        buf_init(b, PLAN_SPEC_MAX);
        check_i64_eq(plan_spec_encode(spec, b, &e), 0);
        return buf_str(b);
}

/* *ret_report is for spawn_finish. */
static inline int instance_case_begin(struct instance_world *w, struct instance_case *c,
                                      int *ret_report)
{
        scoped(buf_done) struct buf b;
        struct spawn_order order = { .zygote = &c->zygote,
                                     .spec = &c->spec,
                                     .spec_bytes = instance_world_encode(&c->spec, &b),
                                     .record = -EBADF };
        int pipes[2], r;

        check_i64_eq(netns_make(&order.netns), 0);
        check_i64_eq(pipe2(pipes, O_CLOEXEC), 0);
        order.output = pipes[1];
        c->output = pipes[0];
        check_i64_eq(zygote_make(&w->ctx, c->spec.uid_first, &c->zygote), 0);
        check_i64_eq(zygote_wait(&c->zygote), 0);
        r = spawn_begin(&w->ctx, &order, ret_report, &c->e);
        (void) close(order.output);
        (void) close(order.netns);
        return r;
}

static inline int instance_case_create(struct instance_world *w, struct instance_case *c)
{
        int report, r = instance_case_begin(w, c, &report);

        return r == 0 ? spawn_finish(&c->spec, report, &c->e) : r;
}

/* Nothing is left of it. */
static inline void instance_case_end(struct instance_world *w, struct instance_case *c)
{
        char path[256], group[ZYGOTE_CGROUP_MAX];

        zygote_cgroup_name(c->spec.uid_first, group);
        c->zygote.uid_first = c->spec.uid_first;
        check_i64_eq(spawn_destroy(&w->ctx, c->spec.id, &c->zygote, &c->e), 0);
        (void) snprintf(path, sizeof(path), "/" DATA_SANDBOXES "/%s", c->spec.id);
        check_i64_eq(access(fake_root_path(&w->root, path), F_OK), -1);
        for (int i = 0; w->ctx.tree && i < CGROUP_PART_MAX_; i++)
                if (w->tree.dirs[i] >= 0)
                        check_i64_eq(faccessat(w->tree.dirs[i], group, F_OK, 0), -1);
        c->output = fd_close(c->output);
}

/* --- talking to its agent --- */

static inline void instance_case_request(struct instance_world *w, struct instance_case *c,
                                         struct str request, struct buf *answer)
{
        scoped(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        char piece[4096];
        ssize_t n;

        (void) snprintf(un.sun_path, sizeof(un.sun_path), "%s/" DATA_SANDBOXES "/%s/agent.sock",
                        w->root.root, c->spec.id);
        check_i64_eq(connect(fd, (struct sockaddr *) &un, sizeof(un)), 0);
        check_i64_eq(write(fd, request.p, request.n), request.n);
        while ((n = read(fd, piece, sizeof(piece))) > 0)
                buf_add(answer, piece, (size_t) n);
        check_i64_eq(n, 0);
}

/* A shell command; the answer is the agent's stream of events. */
static inline void instance_case_run(struct instance_world *w, struct instance_case *c,
                                     const char *command, struct buf *answer)
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
        instance_case_request(w, c, buf_str(&request), answer);
}

static inline bool instance_output_has(const struct buf *answer, const char *text)
{
        return memmem(buf_str(answer).p, answer->n, text, strlen(text)) != NULL;
}

#endif
