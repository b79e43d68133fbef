/* SPDX-License-Identifier: Apache-2.0 */

/* Path segments with tokens, tokens, hosts, origins and cookies. */

#include "tests/fuzz/fuzz.h"

#include "api/access/cookie.h"
#include "api/access/host.h"
#include "api/access/peer.h"
#include "api/access/token.h"
#include "base/base.h"
#include "http/req.h"
#include "model/sandbox.h"

#define SECRET STR("a secret of thirty-two bytes ...")
#define ID     STR("sb-1")

static bool is_end_of(struct str part, struct str complete)
{
        return part.p + part.n == complete.p + complete.n;
}

/* No made-up token is valid; a generated one is, and is parsed back. */
static void check_token(struct str in)
{
        struct str token;
        uint16_t port;

        ASSERT(!token_is_valid(SECRET, in, &(struct token_target){ ID, 7, 8080 }, 1));
        if (token_split_segment(in, &port, &token) < 0)
                return;
        ASSERT(port > 0 && (!token.p || is_end_of(token, in)));
        if (token.p)
                ASSERT(!token_is_valid(SECRET, token, &(struct token_target){ ID, 7, port }, 1));
}

static void check_round_trip(struct str in)
{
        const struct token_target target = { ID, 7, 1 }, port = { ID, 7, 2 }, later = { ID, 8, 1 };
        char text[TOKEN_TEXT_MAX + 1];
        uint64_t expires = 0;
        size_t n;

        memcpy(&expires, in.p, MIN_OF(in.n, sizeof(expires)));
        n = token_write(SECRET, &target, expires, text);
        ASSERT(n <= TOKEN_TEXT_MAX);
        ASSERT(token_is_valid(SECRET, str_of(text, n), &target, 0));
        ASSERT(expires == 0 || !token_is_valid(SECRET, str_of(text, n), &target, expires));
        ASSERT(!token_is_valid(SECRET, str_of(text, n), &port, 0));
        ASSERT(!token_is_valid(SECRET, str_of(text, n), &later, 0));
        text[in.n > 8 ? (unsigned char) in.p[8] % n : 0] ^= 1;
        ASSERT(!token_is_valid(SECRET, str_of(text, n), &target, 0));
}

static void check_host(struct str in)
{
        struct host h;
        struct str id;
        uint16_t port;

        if (host_parse(in, &h) == 0) {
                ASSERT(h.name.n > 0 && h.name.n <= in.n);
                for (size_t i = 0; i < in.n; i++)
                        ASSERT(!memchr("/@\\\"'<>%? #\r\n", in.p[i], 13));
                (void) host_is_loopback(&h);
                if (host_parse_preview(&h, STR("localhost"), &id, &port) == 0)
                        ASSERT(sandbox_id_is_valid(id) && port > 0);
        }
        if (origin_parse(in, &h) == 0)
                ASSERT(origin_is_of(in, &h));
}

static void check_cookies(struct str in)
{
        struct http_headers h = { 0 }, left = { 0 };
        struct str rest;
        struct cookie c;
        struct arena a;

        arena_init(&a, MiB);
        if (http_headers_add(&h, &a, STR("Cookie"), in) == 0
            && cookie_without(&h, STR("t"), &a, &rest) == 0 && rest.p
            && http_headers_add(&left, &a, STR("Cookie"), rest) == 0) {
                struct cookie_iter it = { .headers = &left };

                while (cookie_next(&it, &c))
                        ASSERT(!str_eq(c.name, STR("t")));
        }
        ASSERT(cookie_host_only(in, &a, &rest) < 0 || rest.n <= 2 * in.n + 2);
        (void) http_path_for_log(&a, in);
        arena_done(&a);
}

/* What one node says to another: nothing made up is believed, whatever is said comes back as it was. */
static void check_peer(struct str in)
{
        struct peer_binding seal = { SECRET, STR("one"), STR("process"), STR("GET"), STR("/") };
        struct peer_identity caller = { .known = true, .principal = STR("p"), .role = 1 }, got;
        struct str text;
        struct arena a;

        arena_init(&a, 256 * KiB);
        ASSERT(peer_read(in, &seal, &a, &got) == -EACCES);
        seal.from = STR("one");
        caller.tenant = in;
        if (str_is_utf8(in) && !memchr(in.p, '\0', in.n)
            && peer_write(&seal, &caller, &a, &text) == 0) {
                ASSERT(peer_read(text, &seal, &a, &got) == 0);
                ASSERT(str_eq(got.tenant, in));
        }
        arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct str in = str_of((const char *) p, n);

        if (n == 0 || n > 16 * KiB)
                return 0;
        check_token(in);
        check_round_trip(in);
        check_host(in);
        check_cookies(in);
        check_peer(in);
        return 0;
}
