/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_WORKER_H
#define HUTCH_ENGINE_WORKER_H

/*
 * The worker: who asks the engine.
 *
 * A request becomes a job, which asks the engine one question after the other and ends with an answer.
 * Nothing is kept between jobs that the engine knows better; a worker that is killed has forgotten
 * nothing. Jobs for one sandbox do not overlap in what they change (hutchd sees to that); if they did, the
 * engine's own order would decide.
 *
 *         channel ── request ──► job ── ask ──► engine          job_*.c
 *         channel ◄── news ───── events ◄── stream ── engine    events.c
 *
 * Created and not yet answered is the only state that could be lost: the job undoes what it has made, and
 * if the engine is away by then, the undoing waits for it to be back (undo.c).
 */

#include "base/arena.h"
#include "base/id.h"
#include "base/list.h"
#include "base/log.h"
#include "engine/api.h"
#include "engine/api_call.h"
#include "engine/run_dir.h"
#include "net/channel.h"
#include "engine/relay.h"
#include "engine/settings.h"
#include "engine/protocol.h"
#include "model/sandbox.h"

struct worker {
        struct net_loop *loop;
        const struct log_ctx *log;
        struct engine_settings
                *settings; /* the installation is filled in by hello, if it is not there */
        char *folder;      /* <settings->folder>/<installation>: ours, and locked */
        char *run_path;    /* of run_dirs */
        int lock;
        char installation[ID_HEX_LEN + 1];
        struct sock_addr engine;
        struct channel channel;
        struct http_client *client;  /* for questions */
        struct http_client *streams; /* for what may be silent for long */
        struct http_client *slow;    /* for what may take long before it answers */
        struct run_dirs run_dirs;
        bool run_dirs_opened;
        struct str seccomp; /* see body.h */
        bool greeted;
        bool network_made; /* as far as we know */

        struct list jobs;
        struct list pulls;
        struct list relays;
        struct buf archive;   /* of the agent, for reach "exec"; made when it is first needed */
        struct list undoings; /* of creates, for when the engine is back */
        struct events *events;

        bool ending, parts_closed;
        size_t open; /* parts that must be closed before the end */
        uv_timer_t patience;
};

/* The socket is taken. What is ours is opened, and waited for, when hello has come: only then is it known
 * whose it is. ERR_…, with the story. */
int engine_worker_start(struct worker *w, int fd, struct err *e) must_check;

/* --- jobs --- */

struct job;
typedef void job_step_fn(struct job *j);

struct job {
        struct list node;
        struct worker *worker;
        enum engine_call call;
        int64_t request_id; /* 0: our own; its answer is news, or nothing */
        struct arena arena; /* of the request: secrets */
        struct engine_request q;
        struct str id;
        char name[128]; /* of the container */
        struct ask ask;
        job_step_fn *next;   /* after the answer */
        job_step_fn *cancel; /* NULL: it comes to its end */
        bool canceled;
        struct err err;

        void *impl; /* the call's own */
        void (*impl_free)(void *impl);
};

/* From a request; its views are copied. */
void job_start(struct worker *w, const struct engine_request *q);

/* Our own: a sandbox that may have ended. */
void job_reconcile(struct worker *w, struct str id);

/* Our own: what a create could not undo. If it fails, it is tried again. */
void job_undo(struct worker *w, struct str id);

/* The question is in j->ask; `next` comes with the answer. */
void job_call(struct job *j, const char *method, job_step_fn *next);

/* The last of a job. */
void job_reply(struct job *j, const struct engine_message *m, int fd);
void job_done(struct job *j);           /* 0, without results */
void job_fail(struct job *j, int code); /* j->err is set; returns of err_set fit */

void job_cancel(struct worker *w, int64_t request_id);

/* Whether a create or destroy of it is under way: its end is no news. */
bool job_is_about(const struct worker *w, struct str id);

/* A container that a create waits for may have ended; null view: any. */
void jobs_recheck(struct worker *w, struct str id);

void job__create(struct job *j);
void job__create_recheck(struct job *j);
void job__destroy(struct job *j);
void job__pause(struct job *j);
void job__resume(struct job *j);
void job__inspect(struct job *j);
void job__scan(struct job *j);
void job__connect(struct job *j);
void job__usage(struct job *j);
void job__probe(struct job *j);
void job__snapshot(struct job *j);
void job__snapshot_remove(struct job *j);
void job__snapshots(struct job *j);

/* Whether a job of that kind is under way. */
bool job_is_under_way(const struct worker *w, enum engine_call call);

/* GET of the container by its name; then `next`. */
void job_inspect_container(struct job *j, job_step_fn *next);

/* What that has answered: 1 and *ret, 0 if there is none, or a negative code with j->err. One of that
 * name which is not ours is an error, too. */
int job_container(struct job *j, struct engine_container *ret) must_check;

/* --- creates that could not be undone --- */

void undo_later(struct worker *w, struct str id);
void undo_all(struct worker *w); /* the engine is back */

/* --- images --- */

struct pull;
struct pull_wait {
        struct list node;
        void (*done)(struct pull_wait *p, int code); /* 0, or a code with err */
        struct err err;
        struct pull *_pull;
};

/* One pull of an image at a time for the same credentials, whoever asks. */
void pull_start(struct worker *w, struct pull_wait *x, struct str image,
                const struct image_auth *auth);

/* `done` does not come. The last one who leaves ends it. */
void pull_detach(struct pull_wait *x);

/* --- news --- */

struct events *events_new(struct worker *w);
void events_free(struct events *ev); /* then engine_worker__part_closed, from the loop */

void engine_worker_send(struct worker *w, const struct engine_message *m, int fd);
void engine_worker__part_closed(struct worker *w); /* a part is */
void engine_worker__end_continue(struct worker *w);

/* Appends the filter for containers that are ours, encoded for a query; for images: of that label. */
void engine_worker_add_filter(struct worker *w, struct buf *b, bool events);
void engine_worker_add_image_filter(struct worker *w, struct buf *b);

/* The same for those that have bound a part of this volume. */
void engine_worker_add_volume_filter(struct worker *w, struct buf *b, struct str claim);

#endif
