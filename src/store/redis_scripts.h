/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_REDIS_SCRIPTS_H
#define HUTCH_STORE_REDIS_SCRIPTS_H

/*
 * The scripts that run inside Redis: one for each call of a store, each of them atomic.
 *
 * A value is a plain string at its key: other programs read and write it with GET and SET. The store's own data are in three
 * keys:
 *
 *         hutch:store:counter    the last version given to any key
 *         hutch:store:versions   a hash: key -> SHA-1 of the value, 40 digits, and its version
 *         hutch:store:keys       a sorted set of all keys, all of score 0: ordered as by memcmp
 *
 * A value whose digest is not the recorded one was written by another program: it gets a new version when it is seen first,
 * so that a cas with the old version fails. If another program writes the same bytes as ours, the version stays, which misleads
 * no one.
 *
 * A version is the greater of the counter plus one and the server's clock in microseconds. So versions do not repeat when
 * Redis lost its last second in a crash, or everything in a FLUSHDB; they stay below 2^53 until the year 2255, and so exact in
 * Lua's numbers.
 *
 * All scripts get the three keys as KEYS[1] to KEYS[3], those of one key that key as KEYS[4]. The first write of a script is
 * one that Redis refuses without memory: nothing is half done.
 */

#include "base/str.h"

#define REDIS_COUNTER_KEY  "hutch:store:counter"
#define REDIS_VERSIONS_KEY "hutch:store:versions"
#define REDIS_INDEX_KEY    "hutch:store:keys"

#define REDIS_OWN_KEYS 3
extern const char *const redis_own_keys[REDIS_OWN_KEYS];

/* The first ones in the order of enum store_call. */
enum redis_script {
        REDIS_SCRIPT_GET,    /* ARGV: largest value. nil, "large", or { version, value } */
        REDIS_SCRIPT_PUT,    /* ARGV: value. The version */
        REDIS_SCRIPT_REMOVE, /* ARGV: expected version, or "any". 1, or 0 for a conflict */
        REDIS_SCRIPT_CAS,    /* ARGV: value, expected version. The version, or "" for a conflict */
        REDIS_SCRIPT_SCAN, /* ARGV: from, to (as ZRANGEBYLEX has them), entries, bytes, largest value.
                              * { "1" if there is more, key, version, value, key, … } */
        REDIS_SCRIPT_INDEX, /* ARGV: keys. Indexes those that are strings */
        REDIS_SCRIPT_MAX_,
};

extern const char *const redis_scripts[REDIS_SCRIPT_MAX_];

#endif
