/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPENSANDBOX_SANDBOX_VIEW_H
#define HUTCH_API_OPENSANDBOX_SANDBOX_VIEW_H

/*
 * A sandbox as clients see it. Absent values are left out, never null; times are RFC 3339 in UTC; of the extensions only
 * those are shown that are kept for the client (model/extensions.h).
 *
 * created_at and expires_at go beyond the published description: they repeat createdAt and expiresAt for clients that
 * expect responses in the spelling of requests. All known clients ignore members they do not know.
 */

#include "base/buf.h"
#include "model/sandbox.h"

/* For GET, PATCH and lists, and for the response to a create, which does not repeat the image or snapshot. Both are
 * response_fn: they append one object, for a struct sandbox. */
void sandbox_view_add(struct buf *b, const void *sandbox);
void sandbox_view_add_created(struct buf *b, const void *sandbox);

/* Their members. */
extern const struct json_field sandbox_view_fields[];
extern const struct json_field sandbox_created_fields[];

#endif
