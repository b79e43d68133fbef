/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_WARDEN_IMPL_H
#define HUTCH_WARDEN_WARDEN_IMPL_H

/* Private to the files of the warden: warden.c (the loop), control.c (its socket), calls.c (requests),
 * ward.c (the life of a sandbox), pool.c (seeds and uids), leave.c (groups of those that are gone),
 * room.c (descriptors), network.c, adopt.c (what an earlier warden has left) and janitor.c. */

#include "base/arena.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/tree.h"
#include "os/cgroup_oom.h"
#include "plan/wire.h"
#include "warden/box.h"
#include "warden/netpool.h"
#include "warden/nursery.h"
#include "warden/seed.h"
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

enum ward_phase {
        WARD_SEEDED,   /* has a seed that is not ready yet */
        WARD_BUILDING, /* the seed has its orders */
        WARD_LIVES,
        WARD_ENDED, /* by itself; its folder waits for destroy */
        WARD_DYING, /* destroyed: processes first */
};

/* Somebody who waits for an answer. Of the hutchd before this one: nobody. */
struct asker {
        bool waits;
        enum wire_call call;
        uint64_t ticket;
};

struct ward {
        struct tree_node by_id;     /* not of what has no id */
        struct list node;           /* of w->waiting */
        struct list hungry;         /* of those that wait for a network */
        char id[PLAN_NAME_MAX + 1]; /* "": only processes are left, of which nothing is known */
        enum ward_phase phase;
        struct seed seed; /* its uids, and its process as long as it lives */
        bool child;       /* the process is ours to reap */
        struct wire_state state;
        struct source process, step, shortage;
        struct cgroup_oom oom; /* of one whose memory is limited */
        bool limited;
        bool building; /* is counted as one that is made, see struct room */
        usec_t told;   /* of the last shortage of memory */
        struct asker asker;
        bool freezing;
        bool unburied; /* has ended, and its parent, who is not us, has not reaped it yet */
        usec_t since;  /* it waits */
        bool has_net;
        struct netpool_item
                net; /* its descriptor is a copy of ours, open while the sandbox is made */

        /* While it is made. */
        struct arena arena;
        struct plan_spec spec;
        int record, report;
};

struct ward *ward_new(struct warden *w, const char *id);
void ward_free(struct warden *w, struct ward *x);
struct ward *ward_find(const struct warden *w, const char *id);

/* The seed and the spec are set; answers the asker. */
void ward_create(struct warden *w, struct ward *x);

/* When it has its network; when it gets none. */
void ward_go_on(struct warden *w, struct ward *x);
void ward_give_up(struct warden *w, struct ward *x, const struct err *e);

/* Watches the process of one that lives. */
int ward_watch(struct warden *w, struct ward *x) must_check;

/* Ends its processes; when they are gone, takes everything away and answers. */
void ward_destroy(struct warden *w, struct ward *x);

/* One look at something that comes without an event. True: it needs another one. */
bool ward_look(struct warden *w, struct ward *x);
void ward_wait(struct warden *w, struct ward *x);

/* Of one that lives, for an answer. */
int ward_descriptors(const struct warden *w, const struct ward *x, int fds[static WIRE_FD_LIVING])
        must_check;

/* -ENOENT without a group. */
int ward_group(const struct warden *w, const struct ward *x, struct cgroup *ret) must_check;
int ward_folder(const struct warden *w, const struct ward *x, int *ret_fd) must_check;

/* --- seeds and uids --- */

struct pool_seed {
        struct list node;
        struct source source;
        struct seed seed; /* of one that is coming: only its uids */
        bool coming;      /* the nursery was asked for it (warden/nursery.h) */
        bool ready;
};

struct pool {
        struct list seeds; /* the oldest first */
        unsigned n;        /* with those that are coming */
        unsigned coming;
        struct source nursery; /* its socket */
        int nursery_pidfd;
        unsigned char *uids; /* one for each range: taken? */
        uint32_t next;
        usec_t not_before; /* making one failed */
};

void pool_open(struct warden *w);
void pool_close(struct warden *w);

bool pool_take_uids(struct warden *w, uint32_t uid_first); /* false: they are taken */
void pool_free_uids(struct warden *w, uint32_t uid_first);

/* Somebody is served, and may want more. Making a seed takes longer than what a seed has to do with its
 * orders; it needs the lock of all control groups, and stops every fork of the machine for a moment where
 * it joins groups of version 1. */
void pool_put_off(struct warden *w);

/* In how many milliseconds there is something to do when nothing else is, or -1; and doing it: asking
 * for one seed. Not while sandboxes are made, as long as there are enough. */
int pool_until(const struct warden *w);
void pool_fill(struct warden *w);

/* One that is ready if possible, or a new one. ERR_EXHAUSTED without uids. */
int pool_take(struct warden *w, struct seed *ret, bool *ret_ready, struct err *e) must_check;

/* Of the nursery, which is started if there is none. */
int pool_ask(struct warden *w, enum nursery_work work, uint32_t uid_first) must_check;

/* --- groups of those that are gone --- */

/*
 * To remove a control group makes all others wait, see warden/nursery.h, and whoever has removed one
 * sandbox is likely to want another. So groups without processes wait for a quiet moment, and their uids
 * with them. They are in no book: whoever comes after us finds them by their names.
 */
struct leaving {
        struct list groups; /* the oldest first */
        unsigned n, asked;
        usec_t not_before;
};

void leave_open(struct warden *w);
void leave_close(struct warden *w);

/* Frees the uids when the group is gone. */
void leave_add(struct warden *w, uint32_t uid_first);

/* As pool_put_off, which calls it. */
void leave_put_off(struct warden *w);

/* As pool_until, and asking for one of them. */
int leave_until(const struct warden *w);
void leave_next(struct warden *w);

void leave_answered(struct warden *w, uint32_t uid_first, int result);
void leave_ask_again(struct warden *w); /* there is another nursery */

/* When there are no others: uids of one that was removed at once, still taken; 0 if none could be. */
uint32_t leave_now(struct warden *w);

/* --- descriptors --- */

/*
 * A sandbox that lives holds one descriptor, that of its process. While it is made it holds more, and so
 * does a seed. One whose memory is limited has another one that tells of its want; a quarter of all
 * descriptors may be for that, and beyond it is only found out when the sandbox ends.
 *
 * A create that would leave too few is refused before anything is made, so that all else (scan,
 * destroy, what is under way) goes on.
 */
struct room {
        uint64_t watched;  /* sandboxes whose memory is */
        uint64_t building; /* sandboxes that are being made */
};

int room_for_sandbox(const struct warden *w, struct err *e) must_check; /* ERR_EXHAUSTED */
bool room_for_seed(const struct warden *w);
bool room_for_watch(const struct warden *w);

/* --- networks --- */

struct network_kind {
        struct netpool_item *ready; /* the oldest at head */
        unsigned head, n, max;
        struct list hungry; /* of struct ward */
        bool is_refused;
        struct err refused; /* with this */
};

struct network {
        struct netpool_config config;
        struct source source; /* of the keeper's socket (warden/netkeeper.h) */
        int socket, pidfd;
        usec_t started, not_before;
        struct network_kind kinds[NETPOOL_KINDS];
};

void network_init(struct warden *w);

/* When sandboxes are adopted: those that have a network keep it. */
int network_open(struct warden *w, struct err *e) must_check;
void network_close(struct warden *w);

/* If the keeper is gone: in how many milliseconds another one may be started, else -1. */
int network_until(const struct warden *w);
void network_start(struct warden *w);

/* Whether there can be one of the kind at all. */
int network_check(const struct warden *w, enum plan_network network, struct err *e) must_check;

/* One of the kind that the spec says. -EAGAIN: later, ward_go_on or ward_give_up will be called. */
int network_take(struct warden *w, struct ward *x) must_check;

/* When the sandbox's last process has ended; also of one that has none, or waits for it. */
void network_give_back(struct warden *w, struct ward *x);

/* --- the socket --- */

struct outgoing;

struct control {
        struct source source;
        struct list queue; /* of struct outgoing, what the socket did not take yet */
        enum wire_phase phase;
        char *room; /* of WIRE_MESSAGE_MAX + 1 */
};

int control_open(struct warden *w) must_check;
void control_close(struct warden *w);

/* The descriptors are taken, sent and closed. */
void control_answer(struct warden *w, const struct wire_answer *a, int *fds);
void control_news(struct warden *w, const struct wire_news *n);
void control_forget(struct warden *w);

/* An answer to who waits for one of this sandbox; does nothing if nobody does. `e` NULL: 0. */
void control_tell(struct warden *w, struct asker *a, const struct err *e, int *fds);

/* Descriptors of the request; what is kept is set to -EBADF. */
void calls_run(struct warden *w, const struct wire_request *q, int *fds);

/* --- others --- */

/* Takes over what an earlier warden has left. */
int adopt_all(struct warden *w, struct err *e) must_check;

struct janitor {
        struct source source; /* its socket */
        int pidfd;
};

/* Moves a folder of `from` to the trash; it is removed later. 0 if there is none. */
int janitor_take(struct warden *w, int from, const char *name) must_check;
void janitor_start(struct warden *w);
void janitor_close(struct warden *w);

struct warden {
        const struct warden_config *config;
        const struct log_ctx *log;
        int epoll;
        int boxes, trash; /* folders */
        struct seed_ground ground;
        struct cgroup_tree tree;
        int nowhere; /* where agents say their troubles to */
        struct tree wards;
        struct list waiting;
        struct pool pool;
        struct leaving leaving;
        struct room room;
        struct network network;
        struct buf resolv; /* the text of a file */
        struct control control;
        struct janitor janitor;
        struct source signals;
        uint32_t skipped; /* folders that could be neither read nor removed */
        uint64_t trashed;
        bool stop;
};

#endif
