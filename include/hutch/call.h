/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CALL_H
#define HUTCH_CALL_H

/* Failure, calls, loops and the client. Include hutch/hutch.h, where the rules are. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HUTCH_VERSION_MAJOR 0
#define HUTCH_VERSION_MINOR 1

/* The port of a sandbox at which its agent is asked for. */
#define HUTCH_EXECD_PORT 44772

/* struct x x_init(void): all members zero, but size. */
#define HUTCH_INITIALISER_(name)                    \
        static inline struct name name##_init(void) \
        {                                           \
                struct name v;                      \
                                                    \
                memset(&v, 0, sizeof(v));           \
                v.size = sizeof(v);                 \
                return v;                           \
        }

/* The version of the library that runs: "0.1.0". */
const char *hutch_version(void);

/* --- failure --- */

enum hutch_code {
        HUTCH_OK = 0,
        HUTCH_INVALID = -1,   /* an argument is wrong; nothing was sent */
        HUTCH_NO_MEMORY = -2, /* here, not on the server */
        HUTCH_CONNECT = -3,   /* the server or agent can't be reached, or its TLS not trusted */
        HUTCH_BROKEN = -4,    /* the connection ended in the middle of an answer */
        HUTCH_PROTOCOL = -5,  /* the answer is not what it must be */
        HUTCH_TOO_LARGE = -6, /* the answer is over a limit of the client's options */
        HUTCH_TIMEOUT = -7,   /* not done by the deadline, or silence for too long */
        HUTCH_CANCELED = -8,  /* by you: cancel_fd, hutch_call_cancel, or a callback */
        HUTCH_LOCAL = -9,     /* a file or descriptor of yours failed: error.os_errno */
        HUTCH_REFUSED = -10,  /* the server finds the request wrong (400, 413, 422 and the like) */
        HUTCH_UNAUTHORIZED = -11, /* no key, or a wrong one (401) */
        HUTCH_FORBIDDEN = -12,    /* not with this key (403) */
        HUTCH_NOT_FOUND = -13,    /* no such sandbox, command, file … (404, 410) */
        HUTCH_CONFLICT = -14,     /* not in its present state, or it exists already (409) */
        HUTCH_BUSY = -15,         /* a quota or the server is exhausted: try later (429, 503) */
        HUTCH_UNSUPPORTED = -16,  /* this server, or this library, lacks it (405, 426, 501) */
        HUTCH_SERVER = -17,       /* the server failed (other 5xx) */
        HUTCH_FAILED = -18,       /* the sandbox will not become ready: Failed, Terminated */
        HUTCH_AGAIN = -19,        /* of tunnels: not now; wait for the descriptor */
};

/* A name for a code: "not found". Never NULL. */
const char *hutch_code_text(int code);

/* What went wrong. Texts that came from outside are printable and cut to fit. */
struct hutch_error {
        int code;        /* what the function returned */
        int http_status; /* of the answer, or 0 if there was none */
        int os_errno;    /* of HUTCH_LOCAL, else 0 */
        int _reserved_1;
        char server_code[96]; /* the server's own code, such as DOCKER::SANDBOX_NOT_FOUND, or "" */
        char request_id[96];  /* X-Request-ID of the answer, for the server's log, or "" */
        char message[512];    /* one line: what was tried, and why it failed */
        char _reserved_2[48];
};

/* --- calls --- */

struct hutch_loop;

/*
 * One call: how long it may take, how it is given up, and how it failed. One struct may serve many
 * calls, one after the other. NULL in its place means: block, as long as the client's options say.
 *
 * With a loop the same function only starts the call: it returns 0, and `done` is told the result
 * later, exactly once, from hutch_loop_event, hutch_loop_timeout, hutch_loop_run or hutch_loop_free,
 * never from inside the starting function. If it returns a failure, nothing was started and done is not
 * called. Until done, `call` and `ret` must stay where they are. In done anything may be called but
 * hutch_loop_free of that loop. Other callbacks (output, bytes, events) may start and cancel calls.
 *
 * Deadlines count from the start of the call and cover everything it does, waiting included.
 */
struct hutch_call {
        size_t size;
        int64_t timeout_ms; /* 0: as the client's options say; negative: none */

        /* A blocking call ends with HUTCH_CANCELED when this descriptor of yours becomes readable: an
         * eventfd, pipe, signalfd …, written to by whatever thread or signal handler wants it to end.
         * Nothing is read from it, and it must be one that can be polled. 0: none. */
        int cancel_fd;

        struct hutch_loop *loop; /* NULL: block */
        void (*done)(struct hutch_call *call, int result);
        void *data; /* yours */

        /* Sent as X-Request-ID with lifecycle calls, and must stay as `call` does; NULL: the server makes
         * one. */
        const char *request_id;

        void *_op; /* the library's, while the call runs */
        void *_reserved[5];
        struct hutch_error error; /* of a call that failed; emptied when one starts */
};
HUTCH_INITIALISER_(hutch_call)

/* Gives up a call on a loop: done is told HUTCH_CANCELED, later. Does nothing to a call that is not
 * running. What the server has begun by then it may finish. */
void hutch_call_cancel(struct hutch_call *call);

/* --- loops --- */

enum hutch_events {
        HUTCH_READABLE = 1,
        HUTCH_WRITABLE = 2,
};

/* How the library asks your event loop for attention. Both are called from starting functions, too. */
struct hutch_loop_options {
        size_t size;
        /* From now on hutch_loop_event is to be called when fd is ready for any of `events` (enum
         * hutch_events, level-triggered); 0: no more, and the descriptor will be closed. */
        void (*watch)(void *data, int fd, unsigned events);
        /* hutch_loop_timeout is to be called once, in ms milliseconds, instead of when it was wanted
         * before; negative: not at all. 0 means soon, but not from inside this function. */
        void (*timer)(void *data, int64_t ms);
        void *data;
};
HUTCH_INITIALISER_(hutch_loop_options)

/* A loop on which calls run, thousands at a time. With options both callbacks are needed; without
 * (NULL) the loop waits by itself, in hutch_loop_run, or in yours by hutch_loop_fd. */
int hutch_loop_new(const struct hutch_loop_options *options, struct hutch_loop **ret);

/* Ends the calls that still run (HUTCH_CANCELED), then the loop. Clients and what callbacks need must
 * still be there. */
void hutch_loop_free(struct hutch_loop *loop);

/* To be called when a watched descriptor is ready; errors and hang-ups count as both. */
void hutch_loop_event(struct hutch_loop *loop, int fd, unsigned events);

/* To be called when the timer is due. Too early or once too often does no harm. */
void hutch_loop_timeout(struct hutch_loop *loop);

/* For a loop without options: handles what happens until no call is left, or for timeout_ms
 * (negative: no limit; 0: only what is ready). Returns how many calls are left. */
int hutch_loop_run(struct hutch_loop *loop, int64_t timeout_ms);

/* For a loop without options: a descriptor that is readable whenever hutch_loop_run(loop, 0) has
 * something to do, timers included. */
int hutch_loop_fd(struct hutch_loop *loop);

/* Calls that run on it. */
size_t hutch_loop_calls(const struct hutch_loop *loop);

/* --- the client --- */

struct hutch_pair {
        const char *key;
        const char *value;
};

struct hutch_client_options {
        size_t size;
        int64_t timeout_ms;         /* of calls that say nothing else; 0: 30 s; negative: none */
        int64_t connect_timeout_ms; /* 0: 10 s */
        /* Streams (commands, events, files in and out) have no deadline but that of the call; they end
         * with HUTCH_TIMEOUT after so long without a byte. Agents send something every 3 s.
         * 0: 60 s; negative: never. Whole seconds. */
        int64_t idle_timeout_ms;
        uint64_t response_max;  /* bytes of an answer that is held in memory; 0: 64 MiB */
        uint64_t event_max;     /* bytes of one event of a stream; 0: 16 MiB */
        const char *user_agent; /* NULL: "libhutch/" and the version */
        const char *ca_file;    /* certificates to trust instead of the system's, PEM */
        const char
                *unix_socket; /* connect there instead of to the URL's host; endpoints of the same
                                  * host are reached by it, too */
        const struct hutch_pair
                *headers; /* more headers for lifecycle calls; never sent to agents */
        size_t n_headers;
        bool use_server_proxy; /* ask for endpoints that lead through the server */
};
HUTCH_INITIALISER_(hutch_client_options)

struct hutch_client;

/* A client of the server at `url`, http or https, with or without /v1 at its end. api_key may be NULL.
 * Nothing is sent yet. */
int hutch_client_new(const char *url, const char *api_key,
                     const struct hutch_client_options *options, struct hutch_client **ret);

/* No call of it may run any more. Tunnels go on. */
void hutch_client_free(struct hutch_client *client);

#ifdef __cplusplus
}
#endif

#endif
