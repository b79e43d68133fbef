/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_WORKER_H
#define HUTCH_ENGINE_WORKER_H

/*
 * The engine worker: the process that talks to the container engine. Its theory of operation is in worker.c.
 *
 * A request becomes a job, which makes one call of the engine's API after the other and ends with a reply.
 *
 *         channel ── request ──► job ── API call ──► engine        job_*.c
 *         channel ◄── event ──── events ◄── stream ── engine       events.c
 *
 * Jobs for one sandbox do not overlap in what they change: hutchd sees to that. If they did, the engine's own
 * order would decide.
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

struct engine_worker {
        struct net_loop *loop;
        const struct log_ctx *log;
        struct engine_settings *settings; /* hello fills in the installation if it is missing */
        char *dir;                        /* <settings->dir>/<installation>: ours, and locked */
        char *run_path;                   /* of run_dirs */
        int lock;
        char installation[ID_HEX_LEN + 1];
        struct sock_addr engine;
        struct channel channel;
        struct http_client *client;  /* for ordinary calls */
        struct http_client *streams; /* for responses that may pause for long */
        struct http_client *slow;    /* for responses that may take long to begin */
        struct run_dirs run_dirs;
        bool run_dirs_opened;
        struct str seccomp; /* the security option, see container.h */
        bool greeted;
        bool network_made; /* as far as we know */

        struct list jobs;
        struct list pulls;
        struct list relays;
        struct buf archive; /* with the agent, for reach "exec"; made when it is first needed */
        struct list undos;  /* of creates, for when the engine is back */
        struct events *events;

        bool ending, parts_closed;
        size_t open; /* parts that must close before the process ends */
        uv_timer_t end_timer;
};

/* Takes the socket. What belongs to the installation is opened, and its lock waited for, when hello has come:
 * only hello says which installation it is. */
int engine_worker_start(struct engine_worker *w, int fd, struct err *e) must_check;

/* --- jobs --- */

struct job;
typedef void job_step_fn(struct job *j);

struct job {
        struct list node;
        struct engine_worker *worker;
        enum engine_call call;
        int64_t request_id; /* 0: our own; its result is an event, or nothing */
        struct arena arena; /* of the request: secrets */
        struct engine_request q;
        struct str id;
        char name[128]; /* of the container */
        struct api_call api;
        job_step_fn *next;   /* after the response */
        job_step_fn *cancel; /* NULL: it cannot be canceled */
        bool canceled;
        struct err err;

        void *impl; /* the call's own */
        void (*impl_free)(void *impl);
};

/* From a request, which is copied. */
void job_start(struct engine_worker *w, const struct engine_request *q);

/* Our own: inspects a sandbox that may have ended, and reports it. */
void job_reconcile(struct engine_worker *w, struct str id);

/* Calls the engine's API at this target (see api_call_target); `next` runs with the response. */
void job_request(struct job *j, const char *method, job_step_fn *next, const char *fmt, ...)
        printf_like(4, 5);

/* The same with the call that was built in j->api. */
void job_call(struct job *j, const char *method, job_step_fn *next);

/* The last step of a job. */
void job_reply(struct job *j, const struct engine_message *m, int fd);
void job_done(struct job *j);           /* 0, without results */
void job_fail(struct job *j, int code); /* j->err is set; returns of err_set fit */

void job_cancel(struct engine_worker *w, int64_t request_id);

/* Whether a create or destroy of it is running: its end is not an event. */
bool job_is_about(const struct engine_worker *w, struct str id);

/* A container that a create waits for may have ended; the null view: any. */
void jobs_recheck(struct engine_worker *w, struct str id);

void job__create(struct job *j);
void job__create_recheck(struct job *j);
void job__destroy(struct job *j);
void job__pause(struct job *j);
void job__inspect(struct job *j);
void job__scan(struct job *j);
void job__connect(struct job *j);
void job__usage(struct job *j);
void job__probe(struct job *j);
void job__snapshot(struct job *j);
void job__snapshot_remove(struct job *j);
void job__snapshots(struct job *j);

/* Whether a job of that kind is running. */
bool job_is_under_way(const struct engine_worker *w, enum engine_call call);

/* The response to an inspection of the container by its name: 1 and *ret, 0 if there is none, or a negative code
 * with j->err. A container of that name that is not ours is an error, too. */
int job_container(struct job *j, struct engine_container *ret) must_check;

/* --- creates that could not be undone --- */

void undo_later(struct engine_worker *w, struct str id);
void undo_all(struct engine_worker *w); /* the engine is back */

/* --- images --- */

struct pull;
struct pull_wait {
        struct list node;
        void (*done)(struct pull_wait *p, int code); /* 0, or a code with err */
        struct err err;
        struct pull *_pull;
};

/* At most one pull per image and credentials runs at a time; others wait for it. */
void pull_start(struct engine_worker *w, struct pull_wait *x, struct str image,
                const struct image_auth *auth);

/* `done` is not called. The last waiter to go cancels the pull. */
void pull_detach(struct pull_wait *x);

/* --- events --- */

struct events *events_new(struct engine_worker *w);
void events_free(struct events *ev); /* leads to engine_worker__part_closed, from the loop */

void engine_worker_send(struct engine_worker *w, const struct engine_message *m, int fd);
void engine_worker__part_closed(struct engine_worker *w); /* one of w->open */
void engine_worker__end_continue(struct engine_worker *w);

/* Appends, encoded for a query, the filter for our containers. */
void engine_worker_add_filter(struct engine_worker *w, struct buf *b, bool events);

#endif
