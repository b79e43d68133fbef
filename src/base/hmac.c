/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hmac.h"

#include "base/secret.h"

#include "base/banned.h"

/* The digest of one of the key's two disguises and a text. */
static void digest_with(const uint8_t key[static SHA256_BLOCK], uint8_t pad, struct str text,
                        uint8_t ret[static SHA256_SIZE])
{
        uint8_t block[SHA256_BLOCK];
        struct sha256 s;

        for (size_t i = 0; i < sizeof(block); i++)
                block[i] = key[i] ^ pad;
        sha256_init(&s);
        sha256_add(&s, block, sizeof(block));
        sha256_add(&s, text.p, text.n);
        sha256_finish(&s, ret);
        wipe(block, sizeof(block));
}

void hmac_sha256(struct str key, struct str text, uint8_t ret[static HMAC_SHA256_SIZE])
{
        uint8_t block[SHA256_BLOCK] = { 0 }, inner[SHA256_SIZE];

        if (key.n > sizeof(block))
                sha256(key.p, key.n, block);
        else if (key.n > 0)
                memcpy(block, key.p, key.n);
        digest_with(block, 0x36, text, inner);
        digest_with(block, 0x5c, str_of((const char *) inner, sizeof(inner)), ret);
        wipe(block, sizeof(block));
        wipe(inner, sizeof(inner));
}
