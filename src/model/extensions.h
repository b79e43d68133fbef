/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_EXTENSIONS_H
#define HUTCH_MODEL_EXTENSIONS_H

/*
 * Extensions: further options of a create request, strings by name. Hutch knows these:
 *
 *         poolRef                       take it from a pool; refused, because no driver has pools
 *         access.renew.extend.seconds   each access extends the expiry by that many seconds
 *         bootstrap.execd.isolation     "enable": nested isolation inside the sandbox
 *         hutch.network                 "none" or "private"; the driver decides what it supports
 *         opensandbox.extensions.*      stored and shown, without meaning to Hutch
 *
 * The record keeps all of them; responses show the last kind only.
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

/* The null view if there is none. */
struct str extensions_get(const struct json_map *x, struct str key);

/* By how much an access extends the expiry; 0: not at all. The extensions must have been checked. */
usec_t extensions_renew_by(const struct json_map *x);

#endif
