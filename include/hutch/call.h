/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CALL_H
#define HUTCH_CALL_H

/* Errors, calls, loops and clients. Include <hutch/hutch.h>, which has the general rules. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HUTCH_VERSION_MAJOR 0
#define HUTCH_VERSION_MINOR 1

/* The port on which the agent of a sandbox is reached. */
#define HUTCH_EXECD_PORT 44772

/* Defines `struct name name_init(void)`: `size` is set, all other members are zero. */
#define HUTCH_INITIALISER_(name)                    \
        static inline struct name name##_init(void) \
        {                                           \
                struct name v;                      \
                                                    \
                memset(&v, 0, sizeof(v));           \
                v.size = sizeof(v);                 \
                return v;                           \
        }

/* The version of the library at run time: "0.1.0". */
const char *hutch_version(void);

/* --- errors --- */

enum hutch_code {
        HUTCH_OK = 0,
        HUTCH_INVALID = -1,       /* invalid argument; nothing was sent */
        HUTCH_NO_MEMORY = -2,     /* this process is out of memory */
        HUTCH_CONNECT = -3,       /* cannot connect, or the TLS certificate is not trusted */
        HUTCH_BROKEN = -4,        /* the connection closed before the response was complete */
        HUTCH_PROTOCOL = -5,      /* the response is malformed */
        HUTCH_TOO_LARGE = -6,     /* the response exceeds a limit of the client's options */
        HUTCH_TIMEOUT = -7,       /* the deadline has passed, or the stream was idle for too long */
        HUTCH_CANCELED = -8,      /* by cancel_fd, hutch_call_cancel or a callback */
        HUTCH_LOCAL = -9,         /* a local file or descriptor failed: see error.os_errno */
        HUTCH_REFUSED = -10,      /* the server rejects the request (400, 413, 422 and similar) */
        HUTCH_UNAUTHORIZED = -11, /* the API key is missing or wrong (401) */
        HUTCH_FORBIDDEN = -12,    /* the API key does not permit this (403) */
        HUTCH_NOT_FOUND = -13,    /* no such sandbox, command or file (404, 410) */
        HUTCH_CONFLICT = -14,     /* not possible in the present state, or it exists (409) */
        HUTCH_BUSY = -15,         /* a quota or the server is exhausted; try later (429, 503) */
        HUTCH_UNSUPPORTED = -16,  /* not supported by this server or this library (405, 426, 501) */
        HUTCH_SERVER = -17,       /* the server failed (other 5xx) */
        HUTCH_FAILED = -18,       /* the sandbox cannot become ready: it is Failed or Terminated */
        HUTCH_AGAIN = -19,        /* a tunnel would block; wait for its descriptor */
};

/* A short name of the code, such as "not found". Never NULL. */
const char *hutch_code_text(int code);

/* Details of a failure. Text from the server is made printable and truncated to fit. */
struct hutch_error {
        int code;        /* what the function returned */
        int http_status; /* of the response; 0: there was none */
        int os_errno;    /* for HUTCH_LOCAL, else 0 */
        int _reserved_1;
        char server_code[96]; /* the server's own, such as DOCKER::SANDBOX_NOT_FOUND, or "" */
        char request_id[96];  /* X-Request-ID of the response, as in the server's log, or "" */
        char message[512];    /* one line: what failed, and why */
        char _reserved_2[48];
};

/* --- calls --- */

struct hutch_loop;

/*
 * One call: its deadline, how to cancel it, and its error. A struct may be reused for any number
 * of calls, one after the other. NULL in its place means: block, with the client's default timeout.
 *
 * Without a loop the function blocks until the call has ended. With a loop it starts the call and
 * returns 0; `done` is then called exactly once with the result, from hutch_loop_event,
 * hutch_loop_timeout, hutch_loop_run or hutch_loop_free, and never from inside the function that
 * started the call. If that function fails, nothing was started and `done` is not called. Until
 * `done`, the call and `ret` must stay valid. `done` may use any function except hutch_loop_free on
 * its own loop. Other callbacks (output, bytes, events) may start and cancel calls.
 *
 * The timeout starts with the call and covers everything that it does.
 */
struct hutch_call {
        size_t size;
        int64_t timeout_ms; /* 0: the client's default; negative: none */
        /* A blocking call ends with HUTCH_CANCELED when this descriptor becomes readable: an
         * eventfd, a pipe or a signalfd, which any thread or signal handler may write to. It must
         * support polling. The library does not read from it. 0: none. */
        int cancel_fd;
        struct hutch_loop *loop; /* NULL: block */
        void (*done)(struct hutch_call *call, int result);
        void *data; /* for the caller */
        /* Sent as X-Request-ID with lifecycle calls. Must stay valid until the call has ended.
         * NULL: the server generates one. */
        const char *request_id;
        void *_op; /* private, while the call runs */
        void *_reserved[5];
        struct hutch_error error; /* of a failed call; cleared when a call starts */
};
HUTCH_INITIALISER_(hutch_call)

/* Cancels a call on a loop: `done` gets HUTCH_CANCELED, later. The server may still complete what
 * it has begun. Does nothing if the call is not running. */
void hutch_call_cancel(struct hutch_call *call);

/* --- loops --- */

enum hutch_events {
        HUTCH_READABLE = 1,
        HUTCH_WRITABLE = 2,
};

/* Connects a loop to the caller's event loop. Both callbacks may be called by functions that start
 * calls, too. */
struct hutch_loop_options {
        size_t size;
        /* Watch fd for any of `events` (enum hutch_events, level-triggered) and call
         * hutch_loop_event when it is ready. 0: stop watching, the descriptor is about to close. */
        void (*watch)(void *data, int fd, unsigned events);
        /* Call hutch_loop_timeout once, in ms milliseconds; this replaces the previous timer.
         * Negative: no timer. 0: as soon as possible, but not from inside this callback. */
        void (*timer)(void *data, int64_t ms);
        void *data;
};
HUTCH_INITIALISER_(hutch_loop_options)

/* A loop that runs calls, thousands at the same time. With options, both callbacks are required.
 * Without (NULL), the loop waits by itself in hutch_loop_run, or in another loop by
 * hutch_loop_fd. */
int hutch_loop_new(const struct hutch_loop_options *options, struct hutch_loop **ret);

/* Cancels the calls that still run (HUTCH_CANCELED) and frees the loop. Clients, and the data of
 * callbacks, must still exist. */
void hutch_loop_free(struct hutch_loop *loop);

/* Call this when a watched descriptor is ready. Errors and hang-ups count as both events. */
void hutch_loop_event(struct hutch_loop *loop, int fd, unsigned events);

/* Call this when the timer fires. An early or superfluous call is harmless. */
void hutch_loop_timeout(struct hutch_loop *loop);

/* For a loop without options: runs calls until none is left or timeout_ms have passed (negative: no
 * limit; 0: handle only what is ready). Returns the number of calls that are left. */
int hutch_loop_run(struct hutch_loop *loop, int64_t timeout_ms);

/* For a loop without options: a descriptor that is readable whenever hutch_loop_run(loop, 0) has
 * something to do, timers included. */
int hutch_loop_fd(struct hutch_loop *loop);

/* The number of calls that run. */
size_t hutch_loop_calls(const struct hutch_loop *loop);

/* --- clients --- */

struct hutch_pair {
        const char *key;
        const char *value;
};

struct hutch_client_options {
        size_t size;
        int64_t timeout_ms;         /* default timeout of a call; 0: 30 s; negative: none */
        int64_t connect_timeout_ms; /* 0: 10 s */
        /* Streams (commands, events, file transfers) have no default timeout. They end with
         * HUTCH_TIMEOUT when nothing arrives for this long; agents send a keep-alive every 3 s.
         * Rounded up to seconds. 0: 60 s; negative: never. */
        int64_t idle_timeout_ms;
        uint64_t response_max;   /* bytes of a response kept in memory; 0: 64 MiB */
        uint64_t event_max;      /* bytes of one event of a stream; 0: 16 MiB */
        const char *user_agent;  /* NULL: "libhutch/" and the version */
        const char *ca_file;     /* PEM certificates to trust instead of the system's */
        const char *unix_socket; /* connect here instead of to the URL's host; endpoints on that
                                  * host are reached through it, too */
        const struct hutch_pair *headers; /* added to lifecycle calls; never sent to agents */
        size_t n_headers;
        bool use_server_proxy; /* request endpoints that go through the server's proxy */
};
HUTCH_INITIALISER_(hutch_client_options)

struct hutch_client;

/* Creates a client of the server at `url`: http or https, with or without /v1 at its end. api_key
 * may be NULL. Does not connect. */
int hutch_client_new(const char *url, const char *api_key,
                     const struct hutch_client_options *options, struct hutch_client **ret);

/* None of its calls may be running. Tunnels remain usable. */
void hutch_client_free(struct hutch_client *client);

#ifdef __cplusplus
}
#endif

#endif
