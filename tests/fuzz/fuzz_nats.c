/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "store/nats_key.h"
#include "store/nats_url.h"
#include "store/nats_protocol.h"

/* The first byte chooses: a text that another program wrote as a key of a bucket, bytes of ours as one, URLs, frames. */

static void decode_key(struct str text)
{
        char key[4 * KiB];
        struct buf back;
        size_t n;

        if (text.n > sizeof(key) || nats_key_decode(text, key, &n) < 0)
                return;
        ASSERT(n > 0 && n <= text.n);
        buf_init(&back, 16 * KiB);
        nats_key_encode(&back, str_of(key, n));
        ASSERT(str_eq(buf_str(&back), text)); /* one form for each key */
        buf_done(&back);
}

static void encode_key(struct str bytes)
{
        struct str key = str_of(bytes.p, MIN_OF(bytes.n, STORE_KEY_MAX));
        char back[NATS_KEY_MAX];
        struct buf text;
        size_t n;

        if (key.n == 0)
                return;
        buf_init(&text, NATS_KEY_MAX);
        nats_key_encode(&text, key);
        ASSERT(!buf_failed(&text));
        ASSERT(nats_key_decode(buf_str(&text), back, &n) == 0 && str_eq(str_of(back, n), key));
        buf_done(&text);
}

static void take_urls(struct str text)
{
        struct nats_url url;

        while (text.n > 0 && !nats_url_take(&text, &url))
                ASSERT(url.host.n > 0 && url.host.n <= NATS_HOST_MAX && url.port > 0);
        (void) nats_is_bucket(text);
}

static void read_frames(struct str text)
{
        struct nats_message f;
        ssize_t n;

        while ((n = nats_frame_read(text, &f)) > 0) {
                struct store_entry entry;
                size_t before;

                ASSERT((size_t) n <= text.n
                       && 4 + NATS_MESSAGE_COST + f.first.n + f.second.n == (size_t) n);
                do {
                        before = f.first.n;
                } while (nats_entry_take(&f.first, &entry) > 0
                         && entry.key.n + entry.value.n + f.first.n + NATS_ENTRY_COST == before);
                text = str_skip(text, (size_t) n);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        static void (*const targets[])(struct str) = { decode_key, encode_key, take_urls,
                                                       read_frames };

        if (n > 0)
                targets[p[0] % ARRAY_SIZE(targets)](str_of((const char *) p + 1, n - 1));
        return 0;
}
