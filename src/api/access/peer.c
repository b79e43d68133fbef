/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/peer.h"

#include "base/base.h"
#include "base/base64.h"
#include "base/sha256.h"
#include "base/json.h"
#include "service/service.h"

#define TAG_LEN (2 * HMAC_SHA256_SIZE)

static const struct json_field fields[] = {
        JSON_BOOL(struct peer_identity, known, "known", JSON_OMIT_EMPTY),
        JSON_BOOL(struct peer_identity, bridge, "bridge", JSON_OMIT_EMPTY),
        JSON_BOOL(struct peer_identity, all_tenants, "seesAll", JSON_OMIT_EMPTY),
        JSON_STR(struct peer_identity, tenant, "tenant", JSON_OMIT_EMPTY),
        JSON_STR(struct peer_identity, principal, "principal", JSON_OMIT_EMPTY),
        JSON_STR(struct peer_identity, key, "key", JSON_OMIT_EMPTY),
        JSON_ENUM(struct peer_identity, role, "role", JSON_REQUIRED, &role_table),
        JSON_END,
};

/* No part may hold a line end: that would let two bindings have one text. The HTTP parser refuses them, too. */
static int make_tag(const struct peer_binding *binding, struct str identity,
                    char ret[static TAG_LEN + 1])
{
        const struct str parts[] = { STR("hutch-forwarded-1"), binding->from,   binding->to,
                                     binding->method,          binding->target, identity };
        uint8_t digest[HMAC_SHA256_SIZE];
        scoped(buf_done) struct buf text;
        struct buf hex;

        buf_init(&text, 2 * PEER_TEXT_MAX + 64 * KiB);
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                if (memchr(parts[i].p, '\n', parts[i].n))
                        return -EBADMSG;
                buf_add_str(&text, parts[i]);
                buf_add_char(&text, '\n');
        }
        if (buf_failed(&text))
                return -ENOMEM;
        hmac_sha256(binding->secret_key, buf_str(&text), digest);
        buf_init_fixed(&hex, ret, TAG_LEN + 1);
        buf_add_hex(&hex, digest, sizeof(digest));
        ASSERT(!buf_failed(&hex));
        return 0;
}

int peer_write(const struct peer_binding *binding, const struct peer_identity *identity,
               struct arena *a, struct str *ret)
{
        scoped(buf_done) struct buf json, text;
        char tag[TAG_LEN + 1], *encoded;
        size_t n;

        buf_init(&json, PEER_TEXT_MAX / 2);
        buf_init(&text, PEER_TEXT_MAX);
        json_encode(&json, fields, identity);
        encoded = arena_alloc(a, BASE64_ENCODED(json.n) + 1);
        if (buf_failed(&json) || !encoded)
                return -ENOMEM;
        n = base64_encode(buf_str(&json).p, json.n, encoded);
        if (make_tag(binding, str_of(encoded, n), tag) < 0)
                return -ENOMEM;
        buf_addf(&text, "%.*s %.*s %.*s", STR_ARG(binding->from), (int) n, encoded, (int) TAG_LEN,
                 tag);
        if (buf_failed(&text))
                return -ENOMEM;
        *ret = arena_dup_str(a, buf_str(&text));
        return ret->p ? 0 : -ENOMEM;
}

int peer_read(struct str text, struct peer_binding *binding, struct arena *a,
              struct peer_identity *ret)
{
        struct str identity, tag;
        char right[TAG_LEN + 1], *json;
        struct json_error je;
        size_t n;
        int r;

        if (text.n > PEER_TEXT_MAX || binding->secret_key.n == 0
            || !str_split(&text, ' ', &binding->from) || !str_split(&text, ' ', &identity)
            || !str_split(&text, ' ', &tag) || text.p)
                return -EACCES;
        r = make_tag(binding, identity, right);
        if (r < 0)
                return r == -ENOMEM ? r : -EACCES;
        if (!str_eq_secret(str_of(right, TAG_LEN), tag))
                return -EACCES;
        json = arena_alloc(a, BASE64_DECODED_MAX(identity.n) + 1);
        if (!json)
                return -ENOMEM;
        if (base64_decode(identity, json, &n) < 0)
                return -EBADMSG;
        *ret = (struct peer_identity){ 0 };
        r = json_decode(str_of(json, n), fields, JSON_REFUSE_UNKNOWN, a, ret, &je);
        if (r == -ENOMEM)
                return r;
        return r < 0 || (ret->known && (!ret->tenant.p || !ret->principal.p)) ? -EBADMSG : 0;
}
