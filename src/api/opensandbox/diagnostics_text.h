/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPENSANDBOX_DIAGNOSTICS_TEXT_H
#define HUTCH_API_OPENSANDBOX_DIAGNOSTICS_TEXT_H

/* What is known of a sandbox, as text for people. Programs should not read it: its form may change.
 * Failures are the buffer's. */

#include "api/api.h"

/* One line for each member that says something. */
void diagnostics_add_inspect(struct buf *b, const struct sandbox *s);

/* The last events of the request's sandbox (params[0]), oldest first, at most `limit`; whether there
 * were more. */
bool diagnostics_add_events(struct buf *b, struct http_req *req, size_t limit);

#endif
