/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_ACCESS_TOKEN_H
#define HUTCH_API_ACCESS_TOKEN_H

/*
 * Tokens that grant access to one port of one sandbox. Pure.
 *
 * A token is an HMAC under the secret of the installation over its target, so nothing is stored and it survives a restart.
 * It is valid for no other port and no other sandbox. An id may be used again (the same Idempotency-Key gives the same id
 * once its sandbox is gone), so the creation time is signed, too. A token can't be revoked before its sandbox is deleted; a
 * client that passes one on requests one that expires.
 *
 *         <token>                    32 characters of base64url, 192 bits
 *         <expires>~<token>          valid until that second since 1970, in base 36
 *
 * People pass on the second form; clients of the API send the first in a header. In a path either follows the port, in one
 * segment: "8080", "8080~<token>", "8080~<expires>~<token>". Every token has exactly one text: other spellings of the same
 * number or the same bits are refused.
 */

#include "base/compiler.h"
#include "base/str.h"

#define TOKEN_LEN      32
#define TOKEN_TEXT_MAX (13 + 1 + TOKEN_LEN) /* without a NUL; 13 digits hold 64 bits */

/* What a token grants access to. */
struct token_target {
        struct str id;
        int64_t made_ms; /* created_ms of the sandbox */
        uint16_t port;
};

/* Writes the text, NUL-terminated, and returns its length. expires is in seconds since 1970; 0: never. */
size_t token_write(struct str secret, const struct token_target *target, uint64_t expires,
                   char ret[static TOKEN_TEXT_MAX + 1]);

/* Whether the token is valid for that target now. Takes the same time wherever two tokens differ. An empty secret makes no
 * token valid. */
bool token_is_valid(struct str secret, struct str text, const struct token_target *target,
                    uint64_t now);

/* Splits a path segment into the port and the token behind it, which is the null view if there is none. Does not verify the
 * token. -EINVAL if the segment does not start with a port. */
int token_split_segment(struct str segment, uint16_t *ret_port, struct str *ret_token) must_check;

#endif
