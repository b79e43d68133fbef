/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_ACCESS_TOKEN_H
#define HUTCH_API_ACCESS_TOKEN_H

/*
 * Tokens that open one port of one sandbox. Pure.
 *
 * A token is an HMAC under the secret of the installation over what it opens, so nothing is stored and
 * it survives a restart. It opens nothing else: neither another port nor another sandbox. An id may come
 * back (the same Idempotency-Key gives the same id again, once its sandbox is gone), so the time of its
 * making is signed, too. A token can't be taken back before its sandbox is gone; who wants that asks for
 * one with an end.
 *
 *         <token>                    32 characters of base64url, 192 bits
 *         <expires>~<token>          valid until that second since 1970, in base 36
 *
 * The second form is what people pass on, the first what clients of the API send as a header. In a path
 * either follows the port, in one segment: "8080", "8080~<token>", "8080~<expires>~<token>".
 * Every token has exactly one text: other spellings of the same number or the same bits are refused.
 */

#include "base/compiler.h"
#include "base/str.h"

#define TOKEN_LEN      32
#define TOKEN_TEXT_MAX (13 + 1 + TOKEN_LEN) /* without a NUL; 13 digits hold 64 bits */

/* What a token opens. */
struct token_target {
        struct str id;
        int64_t made_ms; /* created_ms of the sandbox */
        uint16_t port;
};

/* Writes the text, NUL-terminated, and returns its length. Times are in seconds since 1970; 0: it does
 * not end. */
size_t token_write(struct str secret, const struct token_target *door, uint64_t expires,
                   char ret[static TOKEN_TEXT_MAX + 1]);

/* Whether the text opens this door at this time. Its time does not depend on how much of it is right.
 * An empty secret opens nothing. */
bool token_is_valid(struct str secret, struct str text, const struct token_target *door,
                    uint64_t now);

/* Cuts a path segment into the port and the token behind it, which is the null view if there is none.
 * Says nothing about whether the token is good. -EINVAL if it does not begin with a port. */
int token_split_segment(struct str segment, uint16_t *ret_port, struct str *ret_token) must_check;

#endif
