/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPENSANDBOX_AGENT_LOG_H
#define HUTCH_API_OPENSANDBOX_AGENT_LOG_H

/*
 * The last lines that the program of a sandbox has printed, as far as its agent keeps them.
 *
 * This is for debugging, so a sandbox that does not respond is not an error: there is no text, and `failure` says why. The
 * agent is hostile: AGENT_LOG_READ_MAX bytes are read at most, AGENT_LOG_MAX are kept, and a deadline (api.agent_deadline)
 * ends the call.
 */

#include "api/api.h"

#define AGENT_LOG_MAX       (1 * MiB)  /* kept, from the end */
#define AGENT_LOG_READ_MAX  (64 * MiB) /* an honest agent keeps less */
#define AGENT_LOG_LINES_MAX 10000

struct agent_log {
        /* Runs from the loop, exactly once, also after agent_log_cancel. */
        void (*done)(struct agent_log *l);
        struct http_req *req; /* its params[0] names the sandbox; held until done returns */
        size_t lines;         /* how many; 1 to AGENT_LOG_LINES_MAX */

        /* results, valid until done returns; the text is the agent's, byte for byte */
        struct str text;
        bool truncated; /* there was more */
        struct err failure;
        bool has_failure;

        struct service_connect _connect;
        struct http_call _call;
        struct timeout _deadline;
        struct buf _bytes;
        uint64_t _seen;
        bool _connected;
};

void agent_log_start(struct agent_log *l);
void agent_log_cancel(struct agent_log *l);

/* For api.agent_deadline. */
void agent_log__expired(struct timeout *t);

#endif
