/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/subnet.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/sha256.h"
#include "os/fd.h"
#include "os/link.h"
#include "warden/data.h"

#define LIST_TRIES 5
#define SUBNET_MAX (INET_ADDRSTRLEN + 4) /* "255.255.255.255/16" */
#define CANDIDATES (64 + 16 + 64)
#define FRESH      DATA_SUBNET ".fresh" /* until it is complete */

/* --- conflicts --- */

struct search {
        const struct addr_plan *plan;
        bool strict;
        struct link_route found;
        char link[IF_NAMESIZE];
};

static bool overlap(const uint8_t *a, const uint8_t *b, unsigned bits)
{
        const unsigned bytes = bits / 8, rest = bits % 8;

        return memcmp(a, b, bytes) == 0
               && (rest == 0 || ((a[bytes] ^ b[bytes]) & 0xff << (8 - rest) & 0xff) == 0);
}

static int check_route(void *data, const struct link_route *r)
{
        struct search *s = data;
        const struct in_addr v4 = { htonl(s->plan->v4) };
        const bool is_v4 = r->to.family == AF_INET;
        const unsigned ours = is_v4 ? s->plan->v4_bits : 64;
        const uint8_t *subnet = is_v4 ? (const uint8_t *) &v4 : s->plan->v6.s6_addr;
        char link[IF_NAMESIZE] = "";

        if (r->bits == 0 || !overlap(subnet, (const uint8_t *) &r->to.v6, MIN_OF(r->bits, ours)))
                return 0;
        /* Only IPv4 has other candidates. */
        if (r->bits < ours && r->has_gateway && !(s->strict && is_v4))
                return 0;
        if (r->link > 0
            && (!if_indextoname((unsigned) r->link, link) /* gone meanwhile */
                || str_starts_with(str_from(link), str_from(s->plan->prefix))))
                return 0;
        s->found = *r;
        memcpy(s->link, link, sizeof(link));
        return -EADDRINUSE;
}

/* An interface that is down has its address, and no route. */
static int check_address(void *data, const struct link_addr *a, int link)
{
        const struct link_route r = { *a, (unsigned) link_addr_size(a) * 8, link, false };

        return check_route(data, &r);
}

int subnet_check(struct netlink *nl, struct netlink_batch *b, const struct addr_plan *p,
                 bool strict, struct err *e)
{
        struct search s = { .plan = p, .strict = strict };
        char ours[INET6_ADDRSTRLEN] = "", theirs[INET6_ADDRSTRLEN] = "";
        int r = -EAGAIN;

        for (int i = 0; r == -EAGAIN && i < LIST_TRIES; i++) {
                r = link_list_routes(nl, b, check_route, &s);
                if (r == 0)
                        r = link_list_addresses(nl, b, check_address, &s);
        }
        if (r == -EAGAIN)
                return 0;
        if (r != -EADDRINUSE)
                return r < 0 ? err_errno(e, r, "list the routes of this host") : 0;
        (void) inet_ntop(s.found.to.family, &s.found.to.v6, theirs, sizeof(theirs));
        if (s.found.to.family == AF_INET)
                (void) inet_ntop(AF_INET, &(struct in_addr){ htonl(p->v4) }, ours, sizeof(ours));
        else
                (void) inet_ntop(AF_INET6, &p->v6, ours, sizeof(ours));
        return err_set(e, ERR_CONFLICT,
                       "the subnet %s/%u of private networks is in use on this host: it overlaps "
                       "the route to %s/%u%s%s; set native.subnet%c in hutchd.yaml to a free one",
                       ours, s.found.to.family == AF_INET ? p->v4_bits : 64, theirs, s.found.bits,
                       *s.link ? " of interface " : "", s.link,
                       s.found.to.family == AF_INET ? '4' : '6');
}

/* --- the recorded one --- */

static bool read_record(int data, char ret[static SUBNET_MAX])
{
        scoped(fd_closep) int fd =
                openat(data, DATA_SUBNET, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, ret, SUBNET_MAX - 1);

        if (n <= 0)
                return false;
        ret[n - (ret[n - 1] == '\n')] = '\0';
        return true;
}

static int write_record(int data, const char *subnet)
{
        scoped(fd_closep) int fd =
                openat(data, FRESH, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd < 0 || dprintf(fd, "%s\n", subnet) < 0 || fsync(fd) < 0
            || renameat(data, FRESH, data, DATA_SUBNET) < 0)
                return -errno;
        return 0;
}

/* --- choosing --- */

/* 10.192 to 10.255, then 172.16 to 172.31, then 100.64 to 100.127, in a circle that starts at `at`. */
static void candidate(unsigned at, char ret[static SUBNET_MAX])
{
        static const struct {
                unsigned n, first, second;
        } ranges[] = { { 64, 10, 192 }, { 16, 172, 16 }, { 64, 100, 64 } };
        size_t i = 0;

        for (at %= CANDIDATES; at >= ranges[i].n; i++)
                at -= ranges[i].n;
        (void) snprintf(ret, SUBNET_MAX, "%u.%u.0.0/16", ranges[i].first, ranges[i].second + at);
}

static int choose_free(struct netlink *nl, struct netlink_batch *b, const struct subnet_request *q,
                       struct addr_plan *ret, struct err *e)
{
        struct addr_plan_config c = q->config;
        uint8_t digest[SHA256_SIZE];
        char text[SUBNET_MAX];
        int r;

        sha256(c.installation.p, c.installation.n, digest);
        for (unsigned i = 0; i < CANDIDATES; i++) {
                candidate(digest[SHA256_SIZE - 1] % 64 + i, text);
                c.v4 = str_from(text);
                if (addr_plan_init(ret, &c) < 0)
                        return err_set(e, ERR_INVALID, "the IPv6 subnet is not a private /64");
                r = subnet_check(nl, b, ret, /* strict= */ true, e);
                if (r == ERR_RETURN(ERR_CONFLICT))
                        continue;
                if (r < 0)
                        return r;
                r = write_record(q->data, text);
                return r < 0 ? err_errno(e, r, "record the subnet of private networks") : 0;
        }
        return err_set(e, ERR_CONFLICT,
                       "no free subnet for private networks: the routes of this host cover all "
                       "candidates; set native.subnet4 in hutchd.yaml, or native.private to off");
}

int subnet_choose(const struct subnet_request *q, struct addr_plan *ret, struct err *e)
{
        static struct netlink_batch batch;
        struct addr_plan_config c = q->config;
        struct netlink nl = NETLINK_NULL;
        char text[SUBNET_MAX] = "";
        const bool recorded = !c.v4.p && read_record(q->data, text);
        int r = netlink_open(NETLINK_ROUTE, &nl);

        if (r < 0)
                return err_errno(e, r, "open a socket for routes");
        if (recorded)
                c.v4 = str_from(text);
        else if (!c.v4.p && q->in_use)
                c.v4 = STR(ADDR_PLAN_V4_DEFAULT); /* sandboxes from before subnets were recorded */
        if (c.v4.p && addr_plan_init(ret, &c) == 0) {
                r = q->in_use ? 0 : subnet_check(&nl, &batch, ret, /* strict= */ false, e);
                if (r == ERR_RETURN(ERR_CONFLICT) && recorded)
                        r = choose_free(&nl, &batch, q, ret, e);
        } else if (q->config.v4.p) {
                r = err_set(e, ERR_INVALID, "a subnet of private networks is not a private one");
        } else {
                r = choose_free(&nl, &batch, q, ret, e);
        }
        netlink_close(&nl);
        return r;
}
