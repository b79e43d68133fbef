/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_LABELS_H
#define HUTCH_MODEL_LABELS_H

/*
 * The metadata of a sandbox: labels as in Kubernetes.
 *
 * A key is a name, or a DNS name as prefix, a slash and a name; names have up to 63 characters,
 * [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?, and so do values, which may also be empty. The prefix opensandbox.io is reserved
 * for servers.
 *
 * A driver must not store these labels where it stores its own (the owner above all), or a client could claim another owner:
 * "purista.userId" is a valid label by these rules.
 */

#include "base/arena.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/json.h"

/* ERR_INVALID with the key, and the value if that is invalid. */
int labels_check(const struct json_map *labels, struct err *e) must_check;

/* A merge patch (RFC 7396): a value sets, a null view deletes, other labels stay in their order; new keys come last. Deleting
 * a label that does not exist is fine. The patch, including keys of deletions, is checked like labels, and so is the size of
 * the result. *ret is in the arena and shares nothing with patch or old labels; ERR_TOO_LARGE if the arena is full. */
int labels_patch(const struct json_map *old, const struct json_map *patch, struct arena *a,
                 struct json_map *ret, struct err *e) must_check;

/* Decodes a patch from the body of a request: an object of strings, and null to delete. Errors as of json_decode. */
int labels_decode_patch(struct str body, struct arena *a, struct json_map *ret,
                        struct json_error *reterr) must_check;

/* Whether the labels contain all pairs of the filter exactly. An empty filter matches. */
bool labels_match(const struct json_map *labels, const struct json_map *filter);

/* NULL if there is none. */
const struct json_pair *labels_find(const struct json_map *labels, struct str key);

#endif
