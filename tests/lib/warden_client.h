/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_WARDEN_CLIENT_H
#define HUTCH_TESTS_LIB_WARDEN_CLIENT_H

/*
 * A hutchd for tests of hutch-warden: starts the program, speaks the protocol, waits for answers.
 *
 * As the launcher does, it holds both ends of the pair, so that a second warden can take the place of
 * the first.
 */

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/id.h"
#include "os/cgroup.h"
#include "os/fd.h"
#include "os/virtual_file.h"
#include "plan/protocol.h"
#include "tests/lib/check.h"
#include "tests/lib/fake_root.h"
#include "tests/lib/plan_sample.h"
#include "tests/lib/sealed_text.h"
#include "warden/data.h"

#define WARDEN_CLIENT_WAIT ((int) check_timeout(20000)) /* milliseconds until a test gives up */

struct warden_client {
        struct fake_root root;
        char installation[64], group[80];
        int ours, theirs;
        pid_t pid;
        uint64_t request_id;
        const char *uids;
        bool private;        /* networks, in a network namespace that is the test's own */
        const char *subnet4; /* of these; NULL: the warden chooses */

        /* The last message: */
        struct arena arena;
        char *buffer;
        size_t n;
        int fds[WARDEN_FDS_MAX];
        size_t n_fds;
        struct warden_reply reply;
        struct warden_event event;
};

/* --- the program --- */

static inline void warden_client_start(struct warden_client *c)
{
        const char *program = getenv("HUTCH_WARDEN"), *agent = getenv("HUTCH_EXECD");
        char fd[16];

        check_true(program && agent);
        if (!program || !agent) /* The analyser does not know that a check does not return. */
                return;
        (void) snprintf(fd, sizeof(fd), "%d", c->theirs);
        c->pid = fork();
        check_true(c->pid >= 0);
        if (c->pid > 0)
                return;
        (void) fcntl(c->theirs, F_SETFD, 0);
        (void) execl(program, program, "--socket-fd", fd, "--data", c->root.root, "--agent", agent,
                     "--installation", c->installation, "--uids", c->uids, "--zygotes", "2",
                     "--log-level", "error", "--networks", "4", "--dns", "192.0.2.53",
                     c->private ? (c->subnet4 ? "--subnet4" : NULL) : "--no-private",
                     c->private ? c->subnet4 : NULL, NULL);
        _exit(127);
}

static inline void warden_client_open_with(struct warden_client *c, const char *uids, bool private,
                                           const char *subnet4)
{
        char id[ID_HEX_LEN + 1];
        struct ids ids;
        int pair[2];

        /* What a warden leaves behind becomes ours, as it becomes the launcher's. */
        check_i64_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        *c = (struct warden_client){ .uids = uids, .private = private, .subnet4 = subnet4 };
        ids_init(&ids);
        ids_hex(&ids, id);
        (void) snprintf(c->installation, sizeof(c->installation), "test-%s", id);
        (void) snprintf(c->group, sizeof(c->group), "hutch-%s", c->installation);
        fake_root_open(&c->root);
        check_i64_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        c->ours = pair[0];
        c->theirs = pair[1];
        c->buffer = xcalloc(1, WARDEN_MSG_MAX + 1);
        arena_init(&c->arena, MiB);
        warden_client_start(c);
}

static inline void warden_client_open(struct warden_client *c, const char *uids)
{
        warden_client_open_with(c, uids, false, NULL);
}

/* With networks: the caller is in a network namespace of its own. */
static inline void warden_client_open_private(struct warden_client *c, const char *uids)
{
        warden_client_open_with(c, uids, true, NULL);
}

static inline void warden_client_open_subnet(struct warden_client *c, const char *uids,
                                             const char *subnet4)
{
        warden_client_open_with(c, uids, true, subnet4);
}

/* Of the warden's; the first of that name. */
static inline pid_t warden_client_child(const struct warden_client *c, const char *name)
{
        char path[64], text[256], comm[32];
        struct str rest, word;
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int) c->pid,
                        (int) c->pid);
        n = virtual_file_read(path, text, sizeof(text));
        check_true(n > 0);
        rest = str_of(text, (size_t) n);
        while (str_split(&rest, ' ', &word)) {
                uint64_t child;

                if (parse_u64_max(word, INT32_MAX, &child) < 0)
                        continue;
                (void) snprintf(path, sizeof(path), "/proc/%d/comm", (int) child);
                n = virtual_file_read(path, comm, sizeof(comm));
                if (n > 0 && strncmp(comm, name, strlen(name)) == 0)
                        return (pid_t) child;
        }
        fail_msg("no child '%s'", name);
        return 0;
}

/* Ends it and returns its status. */
static inline int warden_client_stop(struct warden_client *c, int sig)
{
        int status = 0;

        check_i64_eq(kill(c->pid, sig), 0);
        check_i64_eq(waitpid(c->pid, &status, 0), c->pid);
        c->pid = 0;
        return status;
}

/* --- messages --- */

static inline void warden_client_drop_fds(struct warden_client *c)
{
        for (size_t i = 0; i < c->n_fds; i++)
                (void) fd_close(c->fds[i]);
        c->n_fds = 0;
}

static inline void warden_client_send_bytes(struct warden_client *c, struct str s, const int *fds,
                                            size_t n_fds)
{
        union {
                struct cmsghdr head;
                char buffer[CMSG_SPACE(16 * sizeof(int))];
        } buffer = { { 0 } };
        struct iovec iov = { (char *) (uintptr_t) s.p, s.n };
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

        check_true(n_fds <= 16);
        if (n_fds > 0) {
                msg.msg_control = &buffer;
                msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                buffer.head.cmsg_level = SOL_SOCKET;
                buffer.head.cmsg_type = SCM_RIGHTS;
                buffer.head.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(&buffer.head), fds, n_fds * sizeof(int));
        }
        check_i64_eq(sendmsg(c->ours, &msg, MSG_NOSIGNAL), s.n);
}

static inline void warden_client_send(struct warden_client *c, struct warden_request *q,
                                      const int *fds, size_t n_fds)
{
        scoped(buf_done) struct buf b;
        struct err e;

        buf_init(&b, WARDEN_MSG_MAX);
        q->request_id = ++c->request_id;
        check_i64_eq(warden_request_encode(q, &b, &e), 0);
        warden_client_send_bytes(c, buf_str(&b), fds, n_fds);
}

static inline void warden_client_receive(struct warden_client *c)
{
        union {
                struct cmsghdr head;
                char buffer[CMSG_SPACE(WARDEN_FDS_MAX * sizeof(int))];
        } buffer;
        struct iovec iov = { c->buffer, WARDEN_MSG_MAX + 1 };
        struct msghdr msg = { .msg_iov = &iov,
                              .msg_iovlen = 1,
                              .msg_control = &buffer,
                              .msg_controllen = sizeof(buffer) };
        struct pollfd p = { .fd = c->ours, .events = POLLIN };
        const struct cmsghdr *h;
        ssize_t n;

        warden_client_drop_fds(c);
        arena_reset(&c->arena);
        if (poll(&p, 1, WARDEN_CLIENT_WAIT) != 1)
                fail_msg("the warden does not reply");
        n = recvmsg(c->ours, &msg, MSG_CMSG_CLOEXEC);
        check_true(n > 0);
        check_false(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
        c->n = (size_t) n;
        h = CMSG_FIRSTHDR(&msg);
        if (h) {
                c->n_fds = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(c->fds, CMSG_DATA(h), c->n_fds * sizeof(int));
        }
}

static inline struct warden_packet warden_client_packet(const struct warden_client *c)
{
        return (struct warden_packet){ str_of(c->buffer, c->n), c->n_fds };
}

static inline void warden_client_wait_event(struct warden_client *c)
{
        struct warden_packet m;
        struct err e;

        warden_client_receive(c);
        m = warden_client_packet(c);
        check_i64_eq(warden_event_decode(&m, &c->arena, &c->event, &e), 0);
}

static inline int warden_client_wait_reply(struct warden_client *c, uint64_t request_id)
{
        struct warden_packet m;
        struct err e;

        warden_client_receive(c);
        m = warden_client_packet(c);
        check_i64_eq(warden_reply_decode(&m, &c->arena, &c->reply, &e), 0);
        check_u64_eq(c->reply.request_id, request_id);
        return c->reply.result;
}

/* --- requests --- */

static inline void warden_client_hello(struct warden_client *c)
{
        struct warden_request q = { .call = WARDEN_MSG_HELLO, .version = WARDEN_PROTOCOL_VERSION };

        warden_client_wait_event(c);
        check_u64_eq(c->event.kind, WARDEN_EVENT_STARTED);
        warden_client_send(c, &q, NULL, 0);
        check_i64_eq(warden_client_wait_reply(c, q.request_id), 0);
}

static inline int warden_client_request(struct warden_client *c, enum warden_msg call,
                                        const char *id)
{
        struct warden_request q = { .call = call, .id = id };

        warden_client_send(c, &q, NULL, 0);
        return warden_client_wait_reply(c, q.request_id);
}

static inline struct plan_spec warden_client_spec(const char *id)
{
        struct plan_spec s = plan_sample_host();

        s.id = s.hostname = id;
        s.uid_first = 0;
        return s;
}

/* Without waiting. */
static inline void warden_client_send_create(struct warden_client *c, const struct plan_spec *s,
                                             const char *record)
{
        scoped(buf_done) struct buf b;
        scoped(fd_closep) int fd = sealed_text(str_from(record));
        struct warden_request q = { .call = WARDEN_MSG_CREATE };
        struct err e;

        buf_init(&b, PLAN_SPEC_MAX);
        check_i64_eq(plan_spec_encode(s, &b, &e), 0);
        q.spec = buf_str(&b);
        warden_client_send(c, &q, &fd, 1);
}

static inline int warden_client_create(struct warden_client *c, const char *id, const char *record)
{
        const struct plan_spec s = warden_client_spec(id);

        warden_client_send_create(c, &s, record);
        return warden_client_wait_reply(c, c->request_id);
}

/* The agent answers over the descriptor that came last. */
static inline bool warden_client_ping(const struct warden_client *c)
{
        static const char request[] =
                "GET /ping HTTP/1.1\r\nHost: box\r\nConnection: close\r\n\r\n";
        scoped(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        char text[512] = "";

        check_u64_eq(c->n_fds, WARDEN_FDS_ALIVE);
        (void) snprintf(un.sun_path, sizeof(un.sun_path), "/proc/self/fd/%d",
                        c->fds[WARDEN_FD_SOCKET]);
        check_i64_eq(connect(fd, (struct sockaddr *) &un, sizeof(un)), 0);
        check_i64_eq(write(fd, request, strlen(request)), strlen(request));
        return read(fd, text, sizeof(text) - 1) > 0 && strstr(text, "200") != NULL;
}

/* Runs a shell command in the sandbox whose agent has that socket; the reply is its stream of events. */
static inline void warden_client_run(int socket_path, const char *command, struct buf *reply)
{
        scoped(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        scoped(buf_done) struct buf body, request;
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        char piece[4096];
        ssize_t n;

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
        (void) snprintf(un.sun_path, sizeof(un.sun_path), "/proc/self/fd/%d", socket_path);
        check_i64_eq(connect(fd, (struct sockaddr *) &un, sizeof(un)), 0);
        check_i64_eq(write(fd, buf_str(&request).p, request.n), request.n);
        while ((n = read(fd, piece, sizeof(piece))) > 0)
                buf_add(reply, piece, (size_t) n);
        check_i64_eq(n, 0);
}

/* What has been answered so far is not looked at. */
static inline void warden_client_drain(struct warden_client *c)
{
        struct pollfd p = { .fd = c->ours, .events = POLLIN };

        while (poll(&p, 1, 0) == 1)
                warden_client_receive(c);
}

/* As a hutchd that comes after another one: all before the reply to its hello is not for it. */
static inline void warden_client_start_over(struct warden_client *c)
{
        struct warden_request q = { .call = WARDEN_MSG_HELLO, .version = WARDEN_PROTOCOL_VERSION };
        struct warden_packet m;
        struct err e;

        warden_client_send(c, &q, NULL, 0);
        do {
                warden_client_receive(c);
                m = warden_client_packet(c);
        } while (warden_reply_decode(&m, &c->arena, &c->reply, &e) < 0
                 || c->reply.request_id != q.request_id);
        check_i64_eq(c->reply.result, 0);
}

/* --- nothing is left --- */

static inline bool warden_client_is_empty(const struct warden_client *c, const char *dir)
{
        DIR *d = opendir(fake_root_path(&c->root, dir));
        size_t n = 0;

        check_true(d != NULL);
        while (readdir(d))
                n++;
        (void) closedir(d);
        return n == 2;
}

static inline void warden_client_close(struct warden_client *c)
{
        struct cgroup_tree tree;

        if (c->pid > 0)
                check_i64_eq(warden_client_stop(c, SIGTERM), 0);
        warden_client_drop_fds(c);
        while (waitpid(-1, NULL, 0) > 0) /* janitors, and zygotes of a killed warden */
                ;
        check_true(warden_client_is_empty(c, "/" DATA_ZYGOTES));
        check_true(warden_client_is_empty(c, "/" DATA_SANDBOXES));
        check_true(warden_client_is_empty(c, "/" DATA_TRASH));
        if (cgroup_tree_open(&tree, "", c->group, CGROUP_KEEP) == 0)
                check_i64_eq(cgroup_tree_remove(&tree, "", c->group), 0);
        arena_done(&c->arena);
        free(c->buffer);
        (void) close(c->ours);
        (void) close(c->theirs);
        fake_root_close(&c->root);
}

#endif
