/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_NATS_KEY_H
#define HUTCH_STORE_NATS_KEY_H

/*
 * Keys of a store as keys of a NATS bucket, and back.
 *
 * A key of a bucket is one or more words of [-/_=a-zA-Z0-9] with points between them, and a subject of the server
 * besides: its wildcards stand for whole words. So
 *
 *         a colon                       a point       sandbox:registry:a1   sandbox.registry.a1
 *         letters, digits, - _ /        themselves
 *         any other byte                =XX, in upper-case hexadecimal      a b%   a=20b=25
 *         no byte at all between colons, or before or behind them: =        a::b   a.=.b      a:   a.=
 *
 * Ordinary keys stay readable, and all keys that begin with some words and a colon are one wildcard of the server:
 * "sandbox:registry:" is "sandbox.registry.>". The order of keys is not kept: the server lists them in none, so they
 * are ordered after they were listed.
 *
 * Each key has exactly one form. What is not the form of any key (others may write to a bucket, too) is
 * refused by nats_key_decode.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"
#include "store/store.h"

#define NATS_KEY_MAX (3 * STORE_KEY_MAX)

/* Appends; the key is not empty. */
void nats_key_encode(struct buf *b, struct str key);

/* -EINVAL if it is none. Writes up to text.n bytes, and their number. */
int nats_key_decode(struct str text, char *ret, size_t *ret_n) must_check;

/* The keys that may begin with the prefix: its words up to the last colon, and the wildcard for all that
 * follows. The rest of the prefix is the caller's to compare. */
void nats_key_wildcard(struct buf *b, struct str prefix);

#endif
