/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/keys.h"

#include "base/base.h"
#include "base/sha256.h"

struct str record_key(struct str id, char ret[static RECORD_KEY_SIZE])
{
        size_t n = strlen(RECORD_PREFIX);

        ASSERT(id.n <= SANDBOX_ID_MAX);
        memcpy(ret, RECORD_PREFIX, n);
        memcpy(ret + n, id.p, id.n);
        return str_of(ret, n + id.n);
}

void add_owner_key(struct buf *b, const char *prefix, const struct owner *o)
{
        scoped(buf_done) struct buf text;
        uint8_t digest[SHA256_SIZE];

        buf_init(&text, 4 * KiB); /* four parts of 256, each escaped to three times its size */
        owner_add_key(&text, o);
        ASSERT(!buf_failed(&text));
        buf_add_str(b, str_from(prefix));
        if (text.n <= OWNER_TEXT_MAX) {
                buf_add_str(b, buf_str(&text));
        } else {
                sha256(buf_str(&text).p, text.n, digest);
                buf_add_str(b, STR(OWNER_LONG_MARK));
                buf_add_hex(b, digest, sizeof(digest));
        }
        ASSERT(!buf_failed(b));
}
