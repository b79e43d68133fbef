/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_LABELS_H
#define HUTCH_MODEL_LABELS_H

/*
 * The metadata of a sandbox: labels as Kubernetes has them.
 *
 * A key is a name, or a DNS name as prefix, a slash and a name; names have up to 63 characters,
 * [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?, and so do values, which may also be empty. The prefix
 * opensandbox.io is reserved for servers.
 *
 * Nothing here says how a driver keeps labels in its runtime. It must not put them where it keeps
 * its own (the owner above all), or a client could write itself another owner: "purista.userId" is
 * a good label by these rules.
 */

#include "base/arena.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/json.h"

/* ERR_INVALID with the key, and the value if it is at fault. */
int labels_check(const struct json_map *labels, struct err *e) must_check;

/* A merge patch (RFC 7396): a value sets, a null view deletes, what is not named stays, in its
 * order; new keys come last. Deleting what is not there is fine. The patch is checked as labels are,
 * the keys of deletions too, and so is the result's size. *ret is made in the arena and shares
 * nothing with the patch or the old labels; ERR_TOO_LARGE if the arena is full. */
int labels_patch(const struct json_map *old, const struct json_map *patch, struct arena *a,
                 struct json_map *ret, struct err *e) must_check;

/* A patch from the body of a request, which is the object itself: texts, and null for what is to go.
 * As json_decode. */
int labels_decode_patch(struct str body, struct arena *a, struct json_map *ret,
                        struct json_error *reterr) must_check;

/* Whether all pairs of the filter are among the labels, to the letter. An empty filter matches. */
bool labels_match(const struct json_map *labels, const struct json_map *filter);

/* NULL if there is none. */
const struct json_pair *labels_find(const struct json_map *labels, struct str key);

#endif
