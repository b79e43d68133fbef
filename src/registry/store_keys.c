/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/store_keys.h"

#include "base/base.h"
#include "base/sha256.h"
#include "model/sandbox.h"

static_assert(sizeof(OWNER_PREFIX) <= OWNER_KEY_SIZE - OWNER_TEXT_MAX
                      && sizeof(LOCK_PREFIX) <= OWNER_KEY_SIZE - OWNER_TEXT_MAX,
              "OWNER_KEY_SIZE is too small");

struct str record_key(struct str id, char ret[static RECORD_KEY_SIZE])
{
        size_t n = strlen(RECORD_PREFIX);

        ASSERT(id.n <= SANDBOX_ID_MAX);
        memcpy(ret, RECORD_PREFIX, n);
        memcpy(ret + n, id.p, id.n);
        return str_of(ret, n + id.n);
}

/* --- owners --- */

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

struct str legacy_owner_key(struct str key, const struct owner *o)
{
        struct str kind = str_from(scope_kind_to_string(SCOPE_SHARED_PROJECT_USER));

        if (o->scope.kind != SCOPE_SHARED_PROJECT_USER || !str_ends_with(key, kind))
                return STR_NULL;
        return str_of(key.p, key.n - kind.n - 1); /* and the ':' before it */
}

/* --- indexes --- */

/* No valid id has a character that JSON would escape. */
struct str index_value(struct str id, char ret[static INDEX_VALUE_SIZE])
{
        ASSERT(sandbox_id_is_valid(id));
        ret[0] = '"';
        memcpy(ret + 1, id.p, id.n);
        ret[1 + id.n] = '"';
        return str_of(ret, id.n + 2);
}

struct str index_id(struct str value)
{
        struct str id;

        if (value.n < 2 || value.p[0] != '"' || value.p[value.n - 1] != '"')
                return STR_NULL;
        id = str_of(value.p + 1, value.n - 2);
        return sandbox_id_is_valid(id) ? id : STR_NULL;
}
