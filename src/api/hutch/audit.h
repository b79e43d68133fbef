/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_HUTCH_AUDIT_H
#define HUTCH_API_HUTCH_AUDIT_H

/*
 * Who did what to which sandbox, and how it ended: one JSON object a line, appended.
 *
 *         {"time":"…","request":"…","tenant":"acme","principal":"ci","key":"k-0a1b2c3d",
 *          "method":"POST","operation":"createSandbox","sandbox":"…","status":202,"peer":"…"}
 *
 * Every operation that changes something is recorded, also one that was refused; a change that
 * nobody is told about because the client left has no status, but the id of what it goes on to make.
 * Reading, and what goes through the proxy into a sandbox, is not recorded here: the access log has it.
 * A line about an API key says its id (targetKey). No line holds a secret: what bodies, headers and
 * queries said is not in it.
 *
 * A line is one write(2) on a descriptor opened with O_APPEND, so lines of several writers do not
 * mix, and what is there is never touched again. A line that can't be written is lost; how many is
 * counted, and the first of a row is logged. The answer was given by then: an audit log on a full
 * disk stops nobody's work, as the operators of this kind of service want it.
 */

#include "base/clock.h"
#include "base/log.h"

struct audit;
struct http_req;

/* Takes the descriptor. The log must outlive it. */
struct audit *audit_new(int fd, const struct clock *clock, const struct log_ctx *log) must_check;
void audit_free(struct audit *a);

/* After rotation: goes on in a new file. Takes the descriptor, closes the old one. */
void audit_reopen(struct audit *a, int fd);

struct audit_entry {
        struct str request, tenant, principal, key, method, operation, sandbox, peer;
        struct str target_key; /* id of the API key that was made or removed */
        int64_t status;        /* 0: there was no answer */
};

void audit_write(struct audit *a, const struct audit_entry *e);

/* Lines that were lost. */
uint64_t audit_lost(const struct audit *a);

/* Records the request if it is one of those that are: called once for every request that has
 * ended. */
void audit_request(struct audit *a, const struct http_req *req);

#endif
