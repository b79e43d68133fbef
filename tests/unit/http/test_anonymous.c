/* SPDX-License-Identifier: Apache-2.0 */
#include "http/anonymous.h"

#include <stdio.h>

#include "base/base.h"
#include "base/log.h"
#include "http/req.h"
#include "tests/lib/check.h"

static struct net_loop loop;
static struct http_anonymous anonymous;
static struct http_anonymous_summary last;
static unsigned summaries;

static void keep(struct http_anonymous *a, const struct http_anonymous_summary *s)
{
        check_true(a == &anonymous);
        last = *s;
        summaries++;
}

static int set_up(void **state)
{
        summaries = 0;
        check_i64_eq(net_loop_init(&loop, &clock_system), 0);
        http_anonymous_init(&anonymous, &loop, keep);
        return 0;
}

static void close_all(void)
{
        http_anonymous_close(&anonymous);
        net_loop_run(&loop);
        net_loop_done(&loop);
}

/* How many of n requests get a line of their own. */
static unsigned admitted(unsigned n, int status, const char *code, const char *peer)
{
        struct http_req req = { .res = { .status = status, .code = code }, .peer = str_from(peer) };
        unsigned lines = 0;

        while (n-- > 0)
                lines += http_anonymous_admit(&anonymous, &req);
        return lines;
}

static const char *printed(const struct http_tally *t, bool as_json)
{
        static char text[4096];
        struct buf b;

        buf_init_fixed(&b, text, sizeof(text));
        as_json ? http_tally_encode(t, &b) : http_tally_print(t, &b);
        check_false(buf_failed(&b));
        return buf_str(&b).p;
}

static void the_first_have_lines_and_the_others_are_counted(void **state)
{
        check_u64_eq(admitted(LOG_BURST + 3, 401, "MISSING_API_KEY", "192.0.2.7"), LOG_BURST);
        check_u64_eq(admitted(2, 401, "INVALID_API_KEY", "unix"), 0);
        check_u64_eq(admitted(1, 200, NULL, ""), 0);
        check_u64_eq(summaries, 0);
        close_all();
        check_u64_eq(summaries, 1);
        check_u64_eq(last.omitted, 6);
        check_z_eq(printed(&last.reasons, false), "MISSING_API_KEY:3 INVALID_API_KEY:2 200:1");
        check_z_eq(printed(&last.peers, true), "{\"192.0.2.7\":3,\"unix\":2,\"-\":1}");
}

static void few_requests_have_no_summary(void **state)
{
        check_u64_eq(admitted(LOG_BURST, 401, "MISSING_API_KEY", "unix"), LOG_BURST);
        close_all();
        check_u64_eq(summaries, 0);
}

static void a_summary_does_not_grow_with_the_number_of_peers(void **state)
{
        (void) admitted(LOG_BURST, 401, "X", "unix");
        for (unsigned i = 0; i < 1000; i++) {
                char peer[200];

                (void) snprintf(peer, sizeof(peer), "%u-%0150u", i, i);
                check_u64_eq(admitted(1, 401, "X", peer), 0);
        }
        close_all();
        check_u64_eq(last.omitted, 1000);
        check_u64_eq(last.peers.other, 1000 - HTTP_TALLY_NAMES);
        check_u64_eq(strlen(last.peers.names[0].name), HTTP_TALLY_NAME_MAX);
        check_true(str_ends_with(str_from(printed(&last.peers, true)), STR(",\"other\":992}")));
        check_true(str_ends_with(str_from(printed(&last.peers, false)), STR(" other:992")));
}

#define test(f) cmocka_unit_test_setup(f, set_up)

int main(void)
{
        const struct CMUnitTest tests[] = {
                test(the_first_have_lines_and_the_others_are_counted),
                test(few_requests_have_no_summary),
                test(a_summary_does_not_grow_with_the_number_of_peers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
