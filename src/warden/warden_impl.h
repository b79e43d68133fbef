/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_WARDEN_IMPL_H
#define HUTCH_WARDEN_WARDEN_IMPL_H

/* Private to the files of the warden: warden.c (the loop), control.c (its socket), calls.c (requests),
 * instance.c (the life of a sandbox), pool.c (seeds and uids), leave.c (groups of those that are gone),
 * fd_budget.c (descriptors), network.c, adopt.c (what an earlier warden has left) and janitor.c. */

#include "base/arena.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/tree.h"
#include "os/cgroup.h"
#include "plan/protocol.h"
#include "warden/spawn.h"
#include "warden/netns_pool.h"
#include "warden/zygote_server.h"
#include "warden/zygote.h"
#include "warden/state.h"
#include "warden/warden.h"

struct warden;

/* --- what the loop waits for --- */

/* One descriptor. It must be removed before the descriptor is closed: children have copies of it for
 * a moment, and the kernel tells of a file as long as anybody has it open. */
struct source {
        void (*ready)(struct warden *w, struct source *s);
        int fd; /* not the source's; -EBADF when it is in no loop */
};

#define SOURCE_NULL ((struct source){ NULL, -EBADF })

int source_add(struct warden *w, struct source *s, int fd,
               void (*ready)(struct warden *w, struct source *s)) must_check;

/* For others than EPOLLIN. With 0, for the reading end of a pipe: when nobody can write to it any more,
 * and not before. */
int source_add_for(struct warden *w, struct source *s, int fd, uint32_t events,
                   void (*ready)(struct warden *w, struct source *s)) must_check;
void source_remove(struct warden *w, struct source *s);

/* --- a sandbox --- */

enum instance_phase {
        INSTANCE_STARTING, /* has a zygote that is not ready yet */
        INSTANCE_BUILDING, /* the zygote has its orders */
        INSTANCE_RUNNING,
        INSTANCE_EXITED,     /* by itself; its directory waits for destroy */
        INSTANCE_DESTROYING, /* destroyed: processes first */
};

/* Somebody who waits for an answer. Of the hutchd before this one: nobody. */
struct requester {
        bool waits;
        enum warden_msg call;
        uint64_t request_id;
};

struct instance {
        struct tree_node by_id;     /* not of what has no id */
        struct list node;           /* of w->waiting */
        struct list waiters;        /* of those that wait for a network */
        char id[PLAN_NAME_MAX + 1]; /* "": only processes are left, of which nothing is known */
        enum instance_phase phase;
        struct zygote zygote; /* its uids, and its process as long as it lives */
        bool child;           /* the process is ours to reap */
        struct instance_status state;
        struct source process, step, oom_source;
        struct cgroup_oom oom; /* of one whose memory is limited */
        bool limited;
        bool building; /* is counted as one that is made, see struct fd_budget */
        usec_t told;   /* of the last oom_source of memory */
        struct requester requester;
        bool freezing;
        bool unreaped; /* has ended, and its parent, who is not us, has not reaped it yet */
        usec_t since;  /* it waits */
        bool has_net;
        struct pooled_netns
                net; /* its descriptor is a copy of ours, open while the sandbox is made */

        /* While it is made. */
        struct arena arena;
        struct plan_spec spec;
        struct str spec_bytes; /* the same as it was received, for the zygote */
        int record, report;
};

struct instance *instance_new(struct warden *w, const char *id);
void instance_free(struct warden *w, struct instance *x);
struct instance *instance_find(const struct warden *w, const char *id);

/* The zygote and the spec are set; answers the requester. */
void instance_create(struct warden *w, struct instance *x);

/* When it has its network; when it gets none. */
void instance_build(struct warden *w, struct instance *x);
void instance_abort(struct warden *w, struct instance *x, const struct err *e);

/* Watches the process of one that lives. */
int instance_watch(struct warden *w, struct instance *x) must_check;

/* Ends its processes; when they are gone, takes everything away and answers. */
void instance_destroy(struct warden *w, struct instance *x);

/* One look at something that comes without an event. True: it needs another one. */
bool instance_poll(struct warden *w, struct instance *x);
void instance_poll_later(struct warden *w, struct instance *x);

/* Of one that lives, for an answer. */
int instance_fds(const struct warden *w, const struct instance *x, int fds[static WARDEN_FDS_ALIVE])
        must_check;

/* -ENOENT without a group. */
int instance_cgroup(const struct warden *w, const struct instance *x, struct cgroup *ret)
        must_check;
int instance_open_dir(const struct warden *w, const struct instance *x, int *ret_fd) must_check;

/* --- seeds and uids --- */

struct pooled_zygote {
        struct list node;
        struct source source;
        struct zygote zygote; /* of one that is coming: only its uids */
        bool coming;          /* the nursery was asked for it (warden/zygote_server.h) */
        bool ready;
};

struct pool {
        struct list seeds; /* the oldest first */
        unsigned n;        /* with those that are coming */
        unsigned coming;
        struct source nursery; /* its socket */
        int server_pidfd;
        unsigned char *uids; /* one for each range: taken? */
        uint32_t next;
        usec_t not_before; /* making one failed */
};

void zygote_pool_open(struct warden *w);
void zygote_pool_close(struct warden *w);

bool uids_take(struct warden *w, uint32_t uid_first); /* false: they are taken */
void uids_free(struct warden *w, uint32_t uid_first);

/* Somebody is served, and may want more. Making a zygote takes longer than what a zygote has to do with its
 * orders; it needs the lock of all cgroups, and stops every fork of the host for a moment where
 * it joins cgroups of v1. */
void zygote_pool_defer(struct warden *w);

/* In how many milliseconds there is something to do when nothing else is, or -1; and doing it: asking
 * for one zygote. Not while sandboxes are made, as long as there are enough. */
int zygote_pool_timeout(const struct warden *w);
void zygote_pool_fill(struct warden *w);

/* One that is ready if possible, or a new one. ERR_EXHAUSTED without uids. */
int zygote_pool_take(struct warden *w, struct zygote *ret, bool *ret_ready, struct err *e)
        must_check;

/* Of the nursery, which is started if there is none. */
int zygote_pool_request(struct warden *w, enum zygote_server_op work, uint32_t uid_first)
        must_check;

/* --- groups of those that are gone --- */

/*
 * To remove a cgroup makes all others wait, see warden/zygote_server.h, and whoever has removed one
 * sandbox is likely to want another. So groups without processes wait for a quiet moment, and their uids
 * with them. They are in no book: whoever comes after us finds them by their names.
 */
struct removals {
        struct list groups; /* the oldest first */
        unsigned n, asked;
        usec_t not_before;
};

void removal_open(struct warden *w);
void removal_close(struct warden *w);

/* Frees the uids when the group is gone. */
void removal_add(struct warden *w, uint32_t uid_first);

/* As zygote_pool_defer, which calls it. */
void removal_defer(struct warden *w);

/* As zygote_pool_timeout, and asking for one of them. */
int removal_timeout(const struct warden *w);
void removal_next(struct warden *w);

void removal_done(struct warden *w, uint32_t uid_first, int result);
void removal_retry_all(struct warden *w); /* there is another nursery */

/* When there are no others: uids of one that was removed at once, still taken; 0 if none could be. */
uint32_t removal_now(struct warden *w);

/* --- descriptors --- */

/*
 * A sandbox that lives holds one descriptor, that of its process. While it is made it holds more, and so
 * does a zygote. One whose memory is limited has another one that tells of its want; a quarter of all
 * descriptors may be for that, and beyond it is only found out when the sandbox ends.
 *
 * A create that would leave too few is refused before anything is made, so that all else (scan,
 * destroy, what is under way) goes on.
 */
struct fd_budget {
        uint64_t watched;  /* sandboxes whose memory is */
        uint64_t building; /* sandboxes that are being made */
};

int fd_budget_check(const struct warden *w, struct err *e) must_check; /* ERR_EXHAUSTED */
bool fd_budget_has_zygote(const struct warden *w);
bool fd_budget_has_watch(const struct warden *w);

/* --- networks --- */

struct network_kind {
        struct pooled_netns *ready; /* the oldest at head */
        unsigned head, n, max;
        struct list waiters; /* of struct instance */
        bool is_refused;
        struct err refused; /* with this */
};

struct network {
        struct netns_pool_config config;
        struct source source; /* of the netns_process's socket (warden/netns_process.h) */
        int socket, pidfd;
        usec_t started, not_before;
        struct network_kind kinds[NETNS_KINDS];
};

void network_init(struct warden *w);

/* When sandboxes are adopted: those that have a network keep it. */
int network_open(struct warden *w, struct err *e) must_check;
void network_close(struct warden *w);

/* If the netns_process is gone: in how many milliseconds another one may be started, else -1. */
int network_timeout(const struct warden *w);
void network_start(struct warden *w);

/* Whether there can be one of the kind at all. */
int network_check(const struct warden *w, enum plan_network network, struct err *e) must_check;

/* One of the kind that the spec says. -EAGAIN: later, instance_build or instance_abort will be called. */
int network_take(struct warden *w, struct instance *x) must_check;

/* When the sandbox's last process has ended; also of one that has none, or waits for it. */
void network_return(struct warden *w, struct instance *x);

/* --- the socket --- */

struct outbound;

struct control {
        struct source source;
        struct list queue; /* of struct outbound, what the socket did not take yet */
        enum warden_phase phase;
        char *fd_budget; /* of WARDEN_MSG_MAX + 1 */
};

int control_open(struct warden *w) must_check;
void control_close(struct warden *w);

/* The descriptors are taken, sent and closed. */
void control_reply(struct warden *w, const struct warden_reply *a, int *fds);
void control_event(struct warden *w, const struct warden_event *n);
void control_discard(struct warden *w);

/* An answer to who waits for one of this sandbox; does nothing if nobody does. `e` NULL: 0. */
void control_reply_to(struct warden *w, struct requester *a, const struct err *e, int *fds);

/* Descriptors of the request; what is kept is set to -EBADF. */
void requests_dispatch(struct warden *w, const struct warden_request *q, int *fds);

/* --- others --- */

/* Takes over what an earlier warden has left. */
int adopt_all(struct warden *w, struct err *e) must_check;

struct janitor {
        struct source source; /* its socket */
        int pidfd;
};

/* Moves a directory of `from` to the trash; it is removed later. 0 if there is none. */
int janitor_trash(struct warden *w, int from, const char *name) must_check;
void janitor_start(struct warden *w);
void janitor_close(struct warden *w);

struct warden {
        const struct warden_config *config;
        const struct log_ctx *log;
        int epoll;
        int sandboxes, trash; /* directories */
        struct host_context ctx;
        struct cgroup_tree tree;
        int null_out; /* where agents say their troubles to */
        struct tree instances;
        struct list waiting;
        struct pool pool;
        struct removals removals;
        struct fd_budget fd_budget;
        struct network network;
        struct buf resolv; /* the text of a file */
        struct control control;
        struct janitor janitor;
        struct source signals;
        uint32_t skipped; /* directories that could be neither read nor removed */
        uint64_t trashed;
        bool stop;
};

#endif
