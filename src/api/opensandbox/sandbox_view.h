/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPENSANDBOX_SANDBOX_VIEW_H
#define HUTCH_API_OPENSANDBOX_SANDBOX_VIEW_H

/*
 * A record as clients see it. What is not there is left out, never null; times are RFC 3339 in UTC;
 * of the extensions only those are shown that are kept for the client (model/extensions.h).
 *
 * Two members go beyond the published description: created_at and expires_at repeat createdAt and
 * expiresAt for clients that expect the answer in the spelling of the request. All known readers
 * pass over members they do not know.
 */

#include "base/buf.h"
#include "model/sandbox.h"

/* What GET, PATCH and lists show, and the answer to a create, which does not repeat where the
 * sandbox came from. Both append one object. */
void sandbox_view_add(struct buf *b, const struct sandbox *s);
void sandbox_view_add_created(struct buf *b, const struct sandbox *s);

/* Their descriptions. */
extern const struct json_field sandbox_view_fields[];
extern const struct json_field sandbox_created_fields[];

#endif
