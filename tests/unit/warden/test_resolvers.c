/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/resolvers.h"

#include <arpa/inet.h>

#include "base/base.h"
#include "tests/lib/check.h"

static void notify(const struct resolvers *r, struct buf *b)
{
        for (size_t i = 0; i < r->n; i++) {
                char text[INET6_ADDRSTRLEN];

                buf_addf(b, "%s%s", i > 0 ? " " : "",
                         inet_ntop(r->v[i].family, &r->v[i].v6, text, sizeof(text)));
        }
}

static const struct {
        const char *name, *text, *want;
} files[] = {
        { "plain", "nameserver 192.0.2.53\n", "192.0.2.53" },
        { "both families, tabs, no end of line", "nameserver\t2001:db8::53\nnameserver 192.0.2.53",
          "2001:db8::53 192.0.2.53" },
        { "a resolver on the host's loopback", "nameserver 127.0.0.53\nnameserver ::1\n", "" },
        { "an address of the host", "nameserver 198.51.100.1\nnameserver 192.0.2.53\n",
          "192.0.2.53" },
        { "one of the host in IPv6", "nameserver 2001:db8::1\n", "" },
        { "link-local, metadata, unspecified, broadcast",
          "nameserver 169.254.169.254\nnameserver 168.63.129.16\nnameserver 0.0.0.0\n"
          "nameserver 224.0.0.1\nnameserver fe80::1\nnameserver fe80::1%eth0\n"
          "nameserver ::ffff:127.0.0.1\nnameserver fd00:ec2::253\n",
          "fd00:ec2::253" },
        { "not more than libc looks at",
          "nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n",
          "192.0.2.1 192.0.2.2 192.0.2.3" },
        { "other lines",
          "# nameserver 192.0.2.9\nsearch nameserver 192.0.2.9\nnameservers 192.0.2.9\n"
          "nameserver\nnameserver x\nnameserver 192.0.2.53 192.0.2.54\n nameserver 192.0.2.9\n",
          "" },
        { "nothing", "", "" },
};

static void test_of_the_machines_those_that_can_be_reached(void **state)
{
        struct link_addr own[2] = { { .family = AF_INET }, { .family = AF_INET6 } };

        (void) state;
        check_i64_eq(inet_pton(AF_INET, "198.51.100.1", &own[0].v4), 1);
        check_i64_eq(inet_pton(AF_INET6, "2001:db8::1", &own[1].v6), 1);
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                scoped(buf_done) struct buf b;
                struct resolvers r;

                check_case(files[i].name);
                buf_init(&b, KiB);
                resolvers_read(str_from(files[i].text), own, ARRAY_SIZE(own), &r);
                notify(&r, &b);
                check_z_eq(b.n > 0 ? buf_str(&b).p : "", files[i].want);
        }
}

static const struct {
        const char *list, *want; /* NULL: it is none */
} lists[] = {
        { "192.0.2.53", "192.0.2.53" },
        { "192.0.2.53,2001:db8::53", "192.0.2.53 2001:db8::53" },
        { "127.0.0.1", "127.0.0.1" }, /* who asks for it gets it */
        { "", NULL },
        { "192.0.2.53,", NULL },
        { "192.0.2.53 192.0.2.54", NULL },
        { "192.0.2.256", NULL },
        { "example.org", NULL },
        { "192.0.2.53\nnameserver 192.0.2.54", NULL },
        { "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc", NULL },
};

static void test_configured_ones(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                scoped(buf_done) struct buf b;
                struct resolvers r;

                check_case(lists[i].list);
                buf_init(&b, KiB);
                check_i64_eq(resolvers_parse(str_from(lists[i].list), &r),
                             lists[i].want ? 0 : -EINVAL);
                if (!lists[i].want)
                        continue;
                notify(&r, &b);
                check_z_eq(buf_str(&b).p, lists[i].want);
                buf_reset(&b);
                check_u64_eq(resolvers_find(&r, &b), r.n);
                check_true(str_starts_with(buf_str(&b), STR("nameserver ")));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_of_the_machines_those_that_can_be_reached),
                cmocka_unit_test(test_configured_ones),
        };

        return cmocka_run_group_tests_name("resolvers", tests, NULL, NULL);
}
