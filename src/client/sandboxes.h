/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_SANDBOXES_H
#define HUTCH_CLIENT_SANDBOXES_H

/* What the calls about sandboxes share with those that are made of several. */

#include "client/op.h"

#define CREATE_TIMEOUT_MS 300000 /* some servers fetch the image before they answer */

#define OWNER_LABEL "hutch.owner"
#define OWNER_TEXT  41 /* 40 hexadecimal digits and a NUL: a label has at most 63 */

/* The label's value: a digest in which no two different owners meet, as each part is told with its
 * length. HUTCH_INVALID if one of the three that are needed is missing. */
int owner_digest(const struct hutch_owner *o, char ret[static OWNER_TEXT]) must_check;

/* Writes the body of a create. `owner` is a digest or NULL. */
void sandboxes_write(struct op *op, const struct hutch_sandbox_options *o, const char *owner);

/* Makes the request the search for an owner's sandboxes. */
void sandboxes_search_owner(struct op *op, const char *owner);

/* The one of a list that is alive, or might become so; else one that failed; else NULL. */
const struct hutch_sandbox *sandboxes_pick(const struct hutch_sandbox_list *l);
bool sandbox_is_alive(const struct hutch_sandbox *s);

#endif
