/* SPDX-License-Identifier: Apache-2.0 */

/* The small parsers: what they accept, written again, reads back as the same; what they refuse
 * leaves its output alone. Quoted text is printable UTF-8 whatever went in. */

#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "base/id.h"
#include "tests/lib/ids.h"

static void try_times(struct str s)
{
        char text[TIME_RFC3339_MAX];
        usec_t t = 7, again = 0;

        if (time_from_rfc3339(s, &t) == 0) {
                ASSERT(time_from_rfc3339(str_of(text, time_to_rfc3339(t, text)), &again) == 0);
                ASSERT(again == t / 1000 * 1000);
        } else {
                ASSERT(t == 7);
        }
        if (time_from_http(s, &t) == 0)
                ASSERT(str_eq(s, str_of(text, time_to_http(t, text))));
}

static void try_numbers(struct str s)
{
        struct buf b;
        char storage[32];
        uint64_t u = 7;
        int64_t i = 7;
        uint16_t port = 7;
        usec_t t = 7;

        buf_init_fixed(&b, storage, sizeof(storage));
        if (parse_u64(s, &u) == 0) {
                buf_add_u64(&b, u);
                ASSERT(str_ends_with(s, buf_str(&b)));
        }
        ASSERT(parse_i64(s, &i) == 0 || i == 7);
        ASSERT(parse_port(s, &port) == 0 ? port > 0 : port == 7);
        ASSERT(parse_duration(s, &t) == 0 || t == 7);
        ASSERT(parse_bytes(s, &u) == 0 || u == 7);
}

static void try_quoting(struct str s)
{
        struct buf complete, cut;
        struct str part, rest = s;

        buf_init(&complete, 1 * MiB);
        buf_init(&cut, 1 * MiB);
        buf_add_quoted(&complete, s);
        ASSERT(buf_failed(&complete) || str_is_utf8(buf_str(&complete)));
        for (size_t i = 0; i < complete.n; i++)
                ASSERT((unsigned char) complete.p[i] >= 0x20 && complete.p[i] != 0x7f);
        if (buf_add_quoted_cut(&cut, s, 50))
                ASSERT(complete.n > 50 || buf_failed(&complete));
        else
                ASSERT(str_eq(buf_str(&cut), buf_str(&complete)));
        ASSERT(cut.n <= 50 && str_is_utf8(buf_str(&cut)));
        ASSERT(!str_is_utf8(s) || str_is_utf8(str_utf8_cut(s, s.n / 2)));
        while (str_split(&rest, '/', &part))
                ASSERT(str_trim(part).n <= s.n);
        buf_done(&complete);
        buf_done(&cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct str s = str_of((const char *) p, n);

        try_times(s);
        try_numbers(s);
        try_quoting(s);
        ASSERT(!id_is_hex(s) || n == ID_HEX_LEN);
        ASSERT(!id_is_uuid(s) || n == ID_UUID_LEN);
        return 0;
}
