/* SPDX-License-Identifier: Apache-2.0 */
#include "service/replay.h"

#include "base/base.h"
#include "base/secret.h"
#include "model/extensions.h"
#include "model/limits.h"
#include "model/text.h"

int replay_check_key(struct str key, struct err *e)
{
        if (!text_is_clean(key, IDEMPOTENCY_KEY_MAX))
                return err_set(e, ERR_INVALID,
                               "the idempotency key must be text of 1 to %d characters",
                               IDEMPOTENCY_KEY_MAX);
        return 0;
}

void replay_id(struct str secret, struct str tenant, struct str key,
               char ret[static ID_UUID_LEN + 1])
{
        uint8_t tag[HMAC_SHA256_SIZE];
        scoped(buf_done) struct buf text;

        /* Neither part can hold a NUL, so it parts them in one way only. */
        buf_init(&text, NAME_MAX_TEXT + 1 + IDEMPOTENCY_KEY_MAX);
        buf_add_str(&text, tenant);
        buf_add_char(&text, '\0');
        buf_add_str(&text, key);
        ASSERT(!buf_failed(&text));
        hmac_sha256(secret, buf_str(&text), tag);
        id_uuid_from(tag, ret);
}

void replay_fingerprint(struct str secret, struct str body, char ret[static FINGERPRINT_LEN + 1])
{
        uint8_t tag[HMAC_SHA256_SIZE];

        hmac_sha256(secret, body, tag);
        hex_encode(ret, tag, sizeof(tag));
        ret[FINGERPRINT_LEN] = '\0';
}

bool replay_matches(const struct sandbox *record, struct str fingerprint)
{
        return str_eq_secret(extensions_get(&record->extensions, EXTENSION_IDEMPOTENCY),
                             fingerprint);
}
