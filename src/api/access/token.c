/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/token.h"

#include "base/base.h"
#include "base/base64.h"
#include "base/sha256.h"
#include "base/parse.h"
#include "base/secret.h"
#include "model/limits.h"

#define TOKEN_BYTES 24 /* of the HMAC; a multiple of three, so base64 needs no padding */
static_assert(BASE64_ENCODED(TOKEN_BYTES) == TOKEN_LEN, "the length of a token");

#define PURPOSE "hutch-token-v1"

static const char digits36[] = "0123456789abcdefghijklmnopqrstuvwxyz";

/* --- the HMAC --- */

static void add_number(struct buf *b, uint64_t v)
{
        for (int shift = 56; shift >= 0; shift -= 8)
                buf_add_char(b, (char) (v >> shift));
}

/* Every part has a fixed length or is preceded by it, so no two targets have one text. */
static void sign(struct str secret, const struct token_target *target, uint64_t expires,
                 char ret[static TOKEN_LEN])
{
        char text[sizeof(PURPOSE) + 4 * sizeof(uint64_t) + SANDBOX_ID_MAX + 1];
        uint8_t mac[HMAC_SHA256_SIZE];
        struct buf b;

        buf_init_fixed(&b, text, sizeof(text));
        buf_add(&b, PURPOSE, sizeof(PURPOSE));
        add_number(&b, target->id.n);
        buf_add_str(&b, target->id);
        add_number(&b, (uint64_t) target->made_ms);
        add_number(&b, target->port);
        add_number(&b, expires);
        ASSERT(!buf_failed(&b));
        hmac_sha256(secret, buf_str(&b), mac);
        (void) base64_encode(mac, TOKEN_BYTES, ret);
        wipe(mac, sizeof(mac));
        for (size_t i = 0; i < TOKEN_LEN; i++) {
                if (ret[i] == '+')
                        ret[i] = '-';
                else if (ret[i] == '/')
                        ret[i] = '_';
        }
}

/* --- texts --- */

size_t token_write(struct str secret, const struct token_target *target, uint64_t expires,
                   char ret[static TOKEN_TEXT_MAX + 1])
{
        char reversed[13]; /* 64 bits in base 36 */
        size_t digits = 0, n = 0;

        for (uint64_t v = expires; v > 0; v /= 36)
                reversed[digits++] = digits36[v % 36];
        while (digits > 0)
                ret[n++] = reversed[--digits];
        if (expires > 0)
                ret[n++] = '~';
        sign(secret, target, expires, ret + n);
        ret[n + TOKEN_LEN] = '\0';
        return n + TOKEN_LEN;
}

bool token_is_valid(struct str secret, struct str text, const struct token_target *target,
                    uint64_t now)
{
        size_t digits = text.n > TOKEN_LEN ? text.n - TOKEN_LEN - 1 : 0;
        uint64_t expires = 0;
        char right[TOKEN_LEN];
        bool same;

        if (secret.n == 0 || target->id.n > SANDBOX_ID_MAX || text.n < TOKEN_LEN
            || text.n > TOKEN_TEXT_MAX)
                return false;
        /* The time is not 0, and has no leading zeros: one number has one text. */
        if (text.n > TOKEN_LEN && (digits == 0 || text.p[0] == '0' || text.p[digits] != '~'))
                return false;
        for (size_t i = 0; i < digits; i++) {
                const char *at = text.p[i] ? strchr(digits36, text.p[i]) : NULL;

                if (!at || __builtin_mul_overflow(expires, 36, &expires)
                    || __builtin_add_overflow(expires, (uint64_t) (at - digits36), &expires))
                        return false;
        }
        sign(secret, target, expires, right);
        same = str_eq_secret(str_of(right, TOKEN_LEN), str_skip(text, text.n - TOKEN_LEN));
        wipe(right, sizeof(right));
        return same && (expires == 0 || now < expires);
}

int token_split_segment(struct str segment, uint16_t *ret_port, struct str *ret_token)
{
        ssize_t tilde = str_find(segment, '~');
        struct str port = tilde < 0 ? segment : str_of(segment.p, (size_t) tilde);

        if (port.n > 1 && port.p[0] == '0')
                return -EINVAL;
        if (parse_port(port, ret_port) < 0)
                return -EINVAL;
        *ret_token = tilde < 0 ? STR_NULL : str_skip(segment, port.n + 1);
        return 0;
}
