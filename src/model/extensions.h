/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_EXTENSIONS_H
#define HUTCH_MODEL_EXTENSIONS_H

/*
 * The bag of further wishes that a create request may bring, texts by name. A few are known:
 *
 *         poolRef                       take it from a pool, which no driver of ours has
 *         access.renew.extend.seconds   each access lengthens the life by so many seconds
 *         bootstrap.execd.isolation     "enable": nested isolation inside the sandbox
 *         hutch.network                 "none" or "private"; which there are is the driver's affair
 *         opensandbox.extensions.*      kept and shown, without meaning to us
 *
 * The record keeps all of them, answers show the last kind only.
 */

#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/json.h"

#define EXTENSION_POOL_REF  STR("poolRef")
#define EXTENSION_RENEW     STR("access.renew.extend.seconds")
#define EXTENSION_ISOLATION STR("bootstrap.execd.isolation")
#define EXTENSION_NETWORK   STR("hutch.network")

/* ERR_INVALID with the key. */
int extensions_check(const struct json_map *x, struct err *e) must_check;

bool extension_is_public(struct str key);

/* The null view if it is not there. */
struct str extensions_get(const struct json_map *x, struct str key);

/* How much an access adds; 0 if it adds nothing. For checked extensions. */
usec_t extensions_renew_by(const struct json_map *x);

#endif
