/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netlink.h"

#include <linux/rtnetlink.h>
#include <signal.h>

#include "os/fd.h"
#include "os/link.h"
#include "os/netns.h"
#include "os/nft.h"
#include "tests/lib/net_world.h"

static struct netlink_batch batch;

/* --- encoding --- */

static void test_a_full_batch_fails_and_stays_so(void **state)
{
        const struct netlink_head head = { RTM_NEWLINK, 0, false };
        const struct ifinfomsg info = { 0 };
        struct netlink none = NETLINK_NULL;
        char large[4000] = { 0 };
        size_t at;

        (void) state;
        netlink_reset(&batch);
        netlink_begin(&batch, &head, &info, sizeof(info));
        at = netlink_nest(&batch, 1);
        for (int i = 0; i < 20; i++)
                netlink_add(&batch, 1, large, sizeof(large));
        netlink_nest_end(&batch, at);
        check_true(batch.failed);
        check_true(batch.n <= sizeof(batch.bytes));
        netlink_add_u32(&batch, 1, 1);
        check_true(batch.failed);
        check_i64_eq(netlink_send(&none, &batch, NULL), -EMSGSIZE);
        check_false(batch.failed);

        for (int i = 0; i <= NETLINK_MESSAGES_MAX; i++) {
                check_false(batch.failed);
                netlink_begin(&batch, &head, &info, sizeof(info));
        }
        check_true(batch.failed);
        check_i64_eq(netlink_send(&none, &batch, NULL), -EMSGSIZE);
        check_i64_eq(netlink_send(&none, &batch, NULL), -EMSGSIZE); /* nothing in it */

        netlink_begin(&batch, &head, large, SIZE_MAX - 1);
        check_true(batch.failed);
        netlink_reset(&batch);
        netlink_begin(&batch, &head, &info, sizeof(info));
        netlink_add(&batch, 1, large, SIZE_MAX - 2);
        check_true(batch.failed);
}

static void test_messages_are_encoded_as_the_kernel_expects(void **state)
{
        const struct netlink_head loud = { 5, NLM_F_CREATE, false }, silent = { 6, 0, true };
        const struct nlmsghdr *h = (const void *) batch.bytes;
        size_t outer, inner;

        (void) state;
        netlink_reset(&batch);
        netlink_begin(&batch, &loud, "abcd", 4);
        outer = netlink_nest(&batch, 1);
        inner = netlink_nest(&batch, 2);
        netlink_add_str(&batch, 3, "name"); /* 4 + 5, padded to 12 */
        netlink_nest_end(&batch, inner);
        netlink_add_u8(&batch, 4, 7);
        netlink_nest_end(&batch, outer);
        netlink_add_be32(&batch, 9, 0x01020304);
        netlink_begin(&batch, &silent, "", 0);
        check_false(batch.failed);
        check_u64_eq(h->nlmsg_len, 16 + 4 + (4 + (4 + 12) + 8) + 8);
        check_u64_eq(h->nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE);
        check_u64_eq(batch.n, h->nlmsg_len + 16);
        check_u64_eq(batch.acks, 1);
        check_true(memcmp(netlink_find(h, 4, 9, 4), "\1\2\3\4", 4) == 0);
        check_true(netlink_find(h, 4, 1, 24) != NULL);
        check_true(netlink_find(h, 4, 9, 5) == NULL);
        check_true(netlink_find(h, 4, 2, 0) == NULL);
}

static void test_a_damaged_reply_has_no_attributes(void **state)
{
        static const struct {
                const char *what;
                uint16_t size;
        } cases[] = { { "none", 0 }, { "head cut", 3 }, { "beyond the end", 9 } };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const struct netlink_head head = { 5, 0, false };
                struct nlattr *a = (void *) (batch.bytes + NLMSG_HDRLEN);

                check_case(cases[i].what);
                netlink_reset(&batch);
                netlink_begin(&batch, &head, "", 0);
                netlink_add_u32(&batch, 1, 1);
                a->nla_len = cases[i].size;
                check_true(netlink_find((const void *) batch.bytes, 0, 1, 0) == NULL);
        }
}

/* --- with the kernel --- */

static int count(void *data, const char *name, int index)
{
        (void) name;
        (void) index;
        ++*(int *) data;
        return 0;
}

static int links(void *data)
{
        static const char *const names[] = { "t-0", "t-1", "t-2", "t-3" };
        struct netlink nl;
        unsigned failed = 99;
        int there = -EBADF, n = 0;

        (void) data;
        apart_check(netns_make(&there) == 0);
        apart_check(netlink_open(NETLINK_ROUTE, &nl) == 0);
        netlink_reset(&batch);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                link_add_veth(&batch,
                              &(struct link_veth){ names[i], (int) i + 40, names[i], there });
        link_set_up(&batch, 41);
        world_address(&batch, 41, "10.0.0.1", 24);
        world_address(&batch, 41, "fd00::1", 64);
        world_default(&batch, 41, "10.0.0.2");
        world_default(&batch, 41, "fd00::2");
        apart_check((errno = -netlink_send(&nl, &batch, NULL)) == 0);
        apart_check(link_index(&nl, "t-3") == 43);
        apart_check(link_index(&nl, "t-4") == -ENODEV);
        apart_check(link_index(&nl, "a name that is too long") == -EINVAL);
        apart_check(link_list(&nl, &batch, "t-", count, &n) == 0 && n == 4);

        /* The first error, and where; what follows is done all the same. */
        link_set_up(&batch, 42);
        link_add_veth(&batch, &(struct link_veth){ "t-0", 0, "t-9", there });
        world_delete_link(&batch, 99);
        link_set_group(&batch, 40, 77);
        link_set_group(&batch, 41, 77);
        apart_check(netlink_send(&nl, &batch, &failed) == -EEXIST);
        apart_check(failed == 1);

        link_delete_group(&batch, 77);
        apart_check(netlink_send(&nl, &batch, NULL) == 0);
        n = 0;
        apart_check(link_list(&nl, &batch, "t-", count, &n) == 0 && n == 2);
        link_delete_group(&batch, 77);
        apart_check(netlink_send(&nl, &batch, NULL) == -ENODEV);
        netlink_close(&nl);
        return 0;
}

static void test_links_are_made_and_deleted_in_batches(void **state)
{
        (void) state;
        if (!apart_possible())
                skip_because("network namespaces need root");
        apart_run(links, NULL, CLONE_NEWNET);
}

/* All or nothing. */
static int rules(void *data)
{
        const struct nft_chain chain = { "c", "filter", NF_INET_FORWARD, 0, NF_DROP };
        const struct nft_elements missing = { "t", "no-such-set", false };
        struct netlink nl;
        unsigned failed = 0;
        size_t at;

        (void) data;
        apart_check(netlink_open(NETLINK_NETFILTER, &nl) == 0);
        nft_begin(&batch);
        nft_add_table(&batch, "t");
        nft_add_chain(&batch, "t", &chain);
        at = nft_elements_begin(&batch, &missing);
        nft_element(&batch, "abcd", 4);
        nft_elements_end(&batch, at);
        nft_end(&batch);
        apart_check(netlink_send(&nl, &batch, &failed) == -ENOENT);
        apart_check(failed == 3);
        apart_check(nft_get_policy(&nl, &batch, "t", "c") == -ENOENT);

        nft_begin(&batch);
        nft_add_table(&batch, "t");
        nft_add_chain(&batch, "t", &chain);
        nft_end(&batch);
        apart_check((errno = -netlink_send(&nl, &batch, NULL)) == 0);
        apart_check(nft_get_policy(&nl, &batch, "t", "c") == NF_DROP);
        apart_check(nft_get_policy(&nl, &batch, "t", "d") == -ENOENT);

        nft_begin(&batch);
        nft_delete_table(&batch, "t");
        nft_end(&batch);
        apart_check(netlink_send(&nl, &batch, NULL) == 0);
        nft_begin(&batch);
        nft_delete_table(&batch, "t");
        nft_end(&batch);
        apart_check(netlink_send(&nl, &batch, NULL) == -ENOENT);
        netlink_close(&nl);
        return 0;
}

static void test_rules_change_all_or_nothing(void **state)
{
        (void) state;
        if (!apart_possible())
                skip_because("network namespaces need root");
        apart_run(rules, NULL, CLONE_NEWNET);
}

/* --- rules that change meanwhile --- */

#define OTHERS "others"
#define ROUNDS 60

static int put_chains(struct netlink *nl, const char *table, int from, int n)
{
        nft_begin(&batch);
        nft_add_table(&batch, table);
        for (int i = from; i < from + n; i++) {
                char name[16];

                (void) snprintf(name, sizeof(name), "c%d", i);
                nft_add_chain(&batch, table, &(struct nft_chain){ .name = name });
        }
        nft_end(&batch);
        return netlink_send(nl, &batch, NULL);
}

never_returns static void change_without_end(void)
{
        struct netlink nl = NETLINK_NULL;
        int r = netlink_open(NETLINK_NETFILTER, &nl);

        while (r == 0) {
                r = put_chains(&nl, OTHERS, 0, 1);
                nft_begin(&batch);
                nft_delete_table(&batch, OTHERS);
                nft_end(&batch);
                r = r == 0 ? netlink_send(&nl, &batch, NULL) : r;
        }
        _exit(1);
}

/* So many chains that the kernel lists them in several parts. */
static int policy_among_changes(void *data)
{
        const struct nft_chain mine = { "mine", "filter", NF_INET_FORWARD, 0, NF_DROP };
        struct netlink nl = NETLINK_NULL;
        bool verified = true;
        pid_t other;

        (void) data;
        apart_check(netlink_open(NETLINK_NETFILTER, &nl) == 0);
        for (int i = 0; i < 10; i++)
                apart_check(put_chains(&nl, "many", i * 100, 100) == 0);
        nft_begin(&batch);
        nft_add_table(&batch, "mine");
        nft_add_chain(&batch, "mine", &mine);
        nft_end(&batch);
        apart_check(netlink_send(&nl, &batch, NULL) == 0);
        other = fork();
        apart_check(other >= 0);
        if (other == 0)
                change_without_end();
        for (int i = 0; verified && i < ROUNDS; i++)
                verified = nft_get_policy(&nl, &batch, "mine", "mine") == NF_DROP
                           && nft_get_policy(&nl, &batch, "mine", "none") == -ENOENT;
        (void) kill(other, SIGKILL);
        apart_check(waitpid(other, NULL, 0) == other);
        netlink_close(&nl);
        apart_check(verified);
        return 0;
}

static void test_a_policy_is_found_while_others_change_rules(void **state)
{
        (void) state;
        if (!apart_possible())
                skip_because("network namespaces need root");
        apart_run(policy_among_changes, NULL, CLONE_NEWNET);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_full_batch_fails_and_stays_so),
                cmocka_unit_test(test_messages_are_encoded_as_the_kernel_expects),
                cmocka_unit_test(test_a_damaged_reply_has_no_attributes),
                cmocka_unit_test(test_links_are_made_and_deleted_in_batches),
                cmocka_unit_test(test_rules_change_all_or_nothing),
                cmocka_unit_test(test_a_policy_is_found_while_others_change_rules),
        };

        return cmocka_run_group_tests_name("netlink", tests, NULL, NULL);
}
