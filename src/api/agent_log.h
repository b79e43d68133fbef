/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_AGENT_LOG_H
#define HUTCH_API_AGENT_LOG_H

/*
 * What the program of a sandbox has printed, as far as its agent keeps it: the last lines.
 *
 * It is for people who look for a fault, so a sandbox that can't be asked is not an error: there is
 * no text then, and `failure` says why. What the agent sends is hostile input: a maximum of it is
 * read, a part of that kept, and a deadline (api.agent_deadline) ends the call.
 */

#include "api/api.h"

#define AGENT_LOG_MAX       (1 * MiB)  /* kept: the end of it */
#define AGENT_LOG_READ_MAX  (64 * MiB) /* more is not read; an agent keeps less */
#define AGENT_LOG_LINES_MAX 10000

struct agent_log {
        /* From the loop, exactly once; agent_log_cancel leads to it, too. */
        void (*done)(struct agent_log *l);
        struct http_req *req; /* whose sandbox is in params[0]; a reference is held until done */
        size_t lines;         /* wanted; 1 to AGENT_LOG_LINES_MAX */

        /* results, until done returns; the text is the agent's, byte for byte */
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
