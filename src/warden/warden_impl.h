/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_WARDEN_IMPL_H
#define HUTCH_WARDEN_WARDEN_IMPL_H

/*
 * Private to the files of the warden:
 *
 *         warden.c          the loop, startup and shutdown
 *         control.c         the socket to hutchd
 *         requests.c        what hutchd can request
 *         instance.c        the life of an instance
 *         adopt.c           instances that an earlier warden has left
 *         zygote_pool.c     zygotes, uid ranges
 *         cgroup_removal.c  deferred removal of cgroups
 *         fd_budget.c       how many descriptors there may be
 *         network.c         network namespaces that are ready
 *         janitor.c         removal of directories
 */

#include "base/arena.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/tree.h"
#include "os/cgroup.h"
#include "plan/protocol.h"
#include "warden/netns_pool.h"
#include "warden/spawn.h"
#include "warden/state.h"
#include "warden/warden.h"
#include "warden/zygote.h"
#include "warden/zygote_server.h"

struct warden;

/* --- event sources --- */

/* One descriptor in the loop. Remove it before the descriptor is closed: forked children hold copies of
 * it for a moment, and epoll reports a file as long as any process has it open. */
struct source {
        void (*ready)(struct warden *w, struct source *s);
        int fd; /* not owned; -EBADF: not in the loop */
};

#define SOURCE_NULL ((struct source){ NULL, -EBADF })

/* For `events` of epoll. 0, for the read end of a pipe: only when all writers have closed it. */
int source_add(struct warden *w, struct source *s, int fd, uint32_t events,
               void (*ready)(struct warden *w, struct source *s)) must_check;
void source_remove(struct warden *w, struct source *s);

/* --- instances --- */

enum instance_phase {
        INSTANCE_STARTING, /* its zygote is not ready, or there is no network namespace yet */
        INSTANCE_BUILDING, /* the zygote has its order */
        INSTANCE_RUNNING,
        INSTANCE_EXITED,     /* its directory stays until hutchd destroys it */
        INSTANCE_DESTROYING, /* processes first, then the names */
};

/* The request that an instance will reply to. */
struct requester {
        bool waiting;
        enum warden_msg call;
        uint64_t request_id;
};

struct instance {
        struct tree_node by_id;     /* of w->instances; not if it has no id */
        struct list poll_node;      /* of w->polled */
        struct list netns_waiter;   /* of struct network_kind */
        char id[PLAN_NAME_MAX + 1]; /* "": only its processes and its cgroup are known */
        enum instance_phase phase;
        struct zygote zygote; /* its uid range, and its first process while that runs */
        bool is_child;        /* the process is ours to reap */
        struct instance_status status;
        struct source process, step, oom_source;
        struct cgroup_oom oom; /* if its memory is limited */
        bool memory_limited, cpu_limited;
        bool out_of_memory; /* at least once */
        bool building;      /* counted in w->fds.building */
        bool freezing;
        bool unreaped; /* has exited, and its parent, which is not the warden, has not reaped it yet */
        usec_t poll_since;
        usec_t last_oom_event;
        struct requester requester;
        bool has_net;
        struct pooled_netns net; /* its descriptor is a copy, open until the sandbox is built */

        /* Until it is built: */
        struct arena arena;
        struct plan_spec spec;
        struct str spec_bytes; /* the same as received, for the zygote */
        int record, report;
};

struct instance *instance_new(struct warden *w, const char *id);
void instance_free(struct warden *w, struct instance *x);
struct instance *instance_find(const struct warden *w, const char *id);

/* A create, whose end is replied to the requester: its spec and its zygote are set. */
void instance_await_zygote(struct warden *w, struct instance *x); /* if it is not ready yet */
void instance_build(struct warden *w, struct instance *x);
void instance_abort(struct warden *w, struct instance *x, const struct err *e);

/* Watches the process of a running instance. */
int instance_watch(struct warden *w, struct instance *x) must_check;

/* Kills its processes; when they are gone, removes everything and replies. */
void instance_destroy(struct warden *w, struct instance *x);

/* For what the kernel sends no event about: checks once. True: it must be checked again. */
bool instance_poll(struct warden *w, struct instance *x);
void instance_poll_later(struct warden *w, struct instance *x);

/* Replies if a request waits. `e` NULL: success. */
void instance_reply(struct warden *w, struct instance *x, const struct err *e);

/* Of a running instance, for a reply. */
int instance_fds(const struct warden *w, const struct instance *x, int fds[static WARDEN_FDS_ALIVE])
        must_check;

/* Opened by name each time, so that an instance needs one descriptor. -ENOENT without a cgroup. */
int instance_cgroup(const struct warden *w, const struct instance *x, struct cgroup *ret)
        must_check;
int instance_open_dir(const struct warden *w, const struct instance *x, int *ret_fd) must_check;

/* --- zygotes and uid ranges --- */

struct pooled_zygote {
        struct list node;
        struct source source;
        struct zygote zygote;
        bool requested; /* from the server, which has not delivered it: only uid_first is set */
        bool ready;
};

struct zygote_pool {
        struct list zygotes; /* oldest first */
        unsigned n;          /* including requested ones */
        unsigned requested;
        struct source server; /* its socket */
        int server_pidfd;
        unsigned char *uids; /* one per range: in use? */
        uint32_t next_range;
        usec_t not_before;
};

void zygote_pool_open(struct warden *w);
void zygote_pool_close(struct warden *w);

bool uids_take(struct warden *w, uint32_t uid_first); /* false: in use */
void uids_free(struct warden *w, uint32_t uid_first);

/* Postpones making zygotes and removing cgroups: a client that was just served is likely to come back. To
 * make a zygote takes longer than a create with one, takes the lock that all cgroups share, and on hosts
 * with cgroup v1 stops every fork of the host for a moment. */
void zygote_pool_defer(struct warden *w);

/* Milliseconds until the pool wants to be filled, or -1; and requests one zygote. As long as enough are
 * left, not while instances are being built. */
int zygote_pool_timeout(const struct warden *w);
void zygote_pool_fill(struct warden *w);

/* A ready one if possible, else a new one. ERR_EXHAUSTED: no uid range is free. */
int zygote_pool_take(struct warden *w, struct zygote *ret, bool *ret_ready, struct err *e)
        must_check;

/* To the zygote server, which is started if it does not run. */
int zygote_pool_request(struct warden *w, enum zygote_server_op op, uint32_t uid_first) must_check;

/* --- deferred cgroup removal --- */

/*
 * Removing a cgroup makes everything else that uses cgroups wait (warden/zygote_server.h), and a client
 * that has destroyed a sandbox is likely to create another one. So the empty cgroups of destroyed
 * instances, and their uid ranges, wait for an idle moment. Nothing is recorded: the next warden finds
 * them by their names.
 */
struct cgroup_removals {
        struct list list; /* oldest first */
        unsigned n, requested;
        usec_t not_before;
};

void removal_close(struct warden *w);

/* Frees the uid range once the cgroup is gone. */
void removal_add(struct warden *w, uint32_t uid_first);
void removal_defer(struct warden *w);

/* As zygote_pool_timeout; and requests one removal. */
int removal_timeout(const struct warden *w);
void removal_next(struct warden *w);

void removal_done(struct warden *w, uint32_t uid_first, int result);
void removal_retry_all(struct warden *w); /* there is a new zygote server */

/* If no uid range is free: removes a cgroup at once. Its range, still marked as in use, or 0. */
uint32_t removal_now(struct warden *w);

/* --- descriptors --- */

/*
 * A running instance holds one descriptor, its pidfd; an instance that is being built holds more, and so
 * does a zygote. A memory limit costs another one, by which out-of-memory events are seen at once; at
 * most a quarter of all descriptors is used for these, and beyond that the event is only found when the
 * instance exits.
 *
 * A create that would leave too few is refused before anything is made, so that scan, destroy and what
 * is under way go on.
 */
struct fd_budget {
        uint64_t watched;  /* instances with an open struct cgroup_oom */
        uint64_t building; /* instances */
};

int fd_budget_check(const struct warden *w, struct err *e) must_check; /* ERR_EXHAUSTED */
bool fd_budget_has_zygote(const struct warden *w);
bool fd_budget_has_watch(const struct warden *w);

/* --- networks --- */

struct network_kind {
        struct pooled_netns *ready; /* a ring; the oldest at head */
        unsigned head, n, max;
        struct list waiters; /* instances */
        bool is_refused;
        struct err refused; /* why */
};

struct network {
        struct netns_pool_config config;
        struct source source; /* the socket of the netns pool process */
        int socket, pidfd;
        usec_t started, not_before;
        struct network_kind kinds[NETNS_KINDS];
};

void network_init(struct warden *w);

/* After adoption: instances keep their namespaces. */
int network_open(struct warden *w, struct err *e) must_check;
void network_close(struct warden *w);

/* If the netns pool process is gone: milliseconds until another one may be started, else -1. */
int network_timeout(const struct warden *w);
void network_start(struct warden *w);

/* Whether there are namespaces of the kind at all. */
int network_check(const struct warden *w, enum plan_network network, struct err *e) must_check;

/* One of the kind that the spec names. -EAGAIN: instance_build or instance_abort is called later. */
int network_take(struct warden *w, struct instance *x) must_check;

/* When the last process has exited. Also for an instance that has none, or waits for one. */
void network_return(struct warden *w, struct instance *x);

/* --- the socket to hutchd --- */

struct control {
        struct source source;
        struct list queue; /* what the socket did not take yet */
        enum warden_phase phase;
        char *buffer; /* of WARDEN_MSG_MAX + 1 */
};

int control_open(struct warden *w) must_check;
void control_close(struct warden *w);

/* Takes the descriptors. */
void control_reply(struct warden *w, const struct warden_reply *reply, int *fds);
void control_event(struct warden *w, const struct warden_event *event);
void control_discard(struct warden *w); /* everything that is queued */

/* The descriptors of a request. A handler takes those that it keeps; the others are closed. */
#define REQUEST_FDS 4 /* more than any request has */
struct request_fds {
        int fds[REQUEST_FDS];
};

struct request_kind {
        /* A negative result is replied with `e`; 0 means that there was, or will be, a reply. */
        int (*run)(struct warden *w, const struct warden_request *q, struct request_fds *f,
                   struct err *e);
        bool is_change;
};

extern const struct request_kind requests[WARDEN_MSG_KIND_MAX_];

/* --- others --- */

int adopt_all(struct warden *w, struct err *e) must_check;

struct janitor {
        struct source source; /* its socket */
        int pidfd;
};

/* Moves a directory of `from` to the trash, from which it is removed later. 0 if there is none. */
int janitor_trash(struct warden *w, int from, const char *name) must_check;
void janitor_start(struct warden *w);

/* The janitor continues until the trash is empty. */
void janitor_close(struct warden *w);

struct warden {
        const struct warden_config *config;
        const struct log_ctx *log;
        int epoll;
        int sandboxes, trash; /* directories */
        struct host_context ctx;
        struct cgroup_tree tree;
        int null_out; /* stdout and stderr of agents */
        struct tree instances;
        struct list polled; /* instances that instance_poll checks */
        struct zygote_pool pool;
        struct cgroup_removals removals;
        struct fd_budget fds;
        usec_t build_began; /* of the last instance */
        struct network network;
        struct buf resolv; /* of /etc/resolv.conf */
        struct control control;
        struct janitor janitor;
        struct source signals;
        uint32_t skipped; /* directories that can be neither read nor removed */
        uint64_t trashed;
        bool stop;
};

/* While an instance is being built, what can wait leaves it the processor; but not for an agent that takes
 * long to serve. */
#define BUSY_MAX USEC_PER_SEC

static inline usec_t busy_until(const struct warden *w)
{
        return w->fds.building > 0 ? w->build_began + BUSY_MAX : 0;
}

#endif
