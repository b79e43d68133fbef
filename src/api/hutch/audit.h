/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_HUTCH_AUDIT_H
#define HUTCH_API_HUTCH_AUDIT_H

/*
 * The audit log: who did what to which sandbox, and with which result. One JSON object per line, appended.
 *
 *         {"time":"…","request":"…","tenant":"acme","principal":"ci","key":"k-0a1b2c3d",
 *          "method":"POST","operation":"createSandbox","sandbox":"…","status":202,"peer":"…"}
 *
 * Every operation that changes something is recorded, also if it was refused. Of unidentified callers only the first few in
 * an interval have a line, and one line has the counts of the others (http/anonymous.h):
 *
 *         {"time":"…","omitted":4980,"reasons":{"MISSING_API_KEY":4980},"peers":{"192.0.2.7":4980}}
 *
 * If the client left before the response, the line has no status, but the id of the sandbox that is still being created.
 * Reading and requests through the proxy into a sandbox are not recorded here: the access log has them. A line about an API
 * key has its id (targetKey). No line holds a secret: nothing from bodies, headers or queries is in it.
 *
 * The file is rotated by size (base/log_file.h). A line that can't be written is lost and counted. The response has been sent
 * by then: an audit log on a full disk does not stop the service.
 */

#include "base/clock.h"
#include "base/log_file.h"

struct audit;
struct http_anonymous;
struct http_anonymous_summary;
struct http_req;

/* Takes the file. */
struct audit *audit_new(struct log_file *file, const struct clock *clock) must_check;
void audit_free(struct audit *a);

/* Someone else has rotated, or the configuration has changed: continues in another file, which it takes. */
void audit_reopen(struct audit *a, struct log_file *file);

struct audit_entry {
        struct str request, tenant, principal, key, method, operation, sandbox, peer;
        struct str target_key; /* id of the API key that was created or removed */
        int64_t status;        /* 0: there was no response */
};

void audit_write(struct audit *a, const struct audit_entry *e);

/* The number of lost lines. */
uint64_t audit_lost(const struct audit *a);

/* Records the request if it changes something, or counts it. Called once for every request that has ended. */
void audit_request(struct audit *a, const struct http_req *req, struct http_anonymous *anonymous);

/* The line about requests of unidentified callers that have none. */
void audit_write_omitted(struct audit *a, const struct http_anonymous_summary *s);

#endif
