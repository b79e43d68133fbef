/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_NATS_KEY_H
#define HUTCH_STORE_NATS_KEY_H

/*
 * Keys of a store as keys of a NATS bucket, and back.
 *
 * A key of a bucket is one or more words of [-/_=a-zA-Z0-9] separated by dots, and a subject of the server, whose wildcards
 * match whole words. So
 *
 *         a colon                       a dot         sandbox:registry:a1   sandbox.registry.a1
 *         letters, digits, - _ /        themselves
 *         any other byte                =XX, in upper-case hexadecimal      a b%   a=20b=25
 *         nothing between colons, or before or after them: =                a::b   a.=.b      a:   a.=
 *
 * Ordinary keys stay readable, and all keys that begin with some words and a colon match one wildcard of the server:
 * "sandbox:registry:" is "sandbox.registry.>". The order of keys is not preserved: the server lists subjects in no order, so
 * they are sorted afterwards.
 *
 * Each key has exactly one form. nats_key_decode refuses anything else: other programs may write to a bucket, too.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"
#include "store/store.h"

#define NATS_KEY_MAX (3 * STORE_KEY_MAX)

/* Appends the form of a key, which is not empty. */
void nats_key_encode(struct buf *b, struct str key);

/* -EINVAL if it is not the form of a key. Writes up to text.n bytes, and their number. */
int nats_key_decode(struct str text, char *ret, size_t *ret_n) must_check;

/* Matches all keys with the prefix: its words up to the last colon, then the wildcard. The caller compares what follows the
 * last colon. */
void nats_key_wildcard(struct buf *b, struct str prefix);

#endif
