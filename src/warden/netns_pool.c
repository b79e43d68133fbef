/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/netns_pool.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "os/conntrack.h"
#include "os/fd.h"
#include "os/ip_forward.h"
#include "os/link.h"
#include "os/mount.h"
#include "os/netns.h"
#include "os/virtual_file.h"
#include "warden/subnet.h"
#include "warden/veth_pair.h"

#define LIST_TRIES   5
#define INDEX_TRIES  8
#define SETTLE_MAX   50 /* milliseconds */
#define SETTLING_MAX 16
#define PROC_USES    64 /* see netns_make_via */

/* Indices, first in, first out; never more than there are. */
struct queue {
        uint32_t *v;
        uint32_t max, head, n;
};

enum state { FREE, SETTLING, READY, TAKEN, RETURNED, CLOSING };

struct slot {
        int fd;
        enum state state;
};

struct kind {
        struct slot *slots;
        uint32_t max;
        unsigned depth;
        int error;
        struct queue free, ready, returned;
};

/* One of PRIVATE whose first packet could still be lost: a worker of the kernel makes routes for the new
 * addresses of IPv6. Meanwhile others are begun. */
struct settling {
        uint32_t index;
        int link; /* the host's end */
        int news; /* of addresses inside */
        bool inside, machine;
};

struct netns_pool {
        struct addr_plan addrs;
        struct netrules_service services[NETRULES_SERVICES_MAX];
        size_t n_services;
        unsigned close_batch;
        struct kind kinds[NETNS_KINDS];
        bool v6;        /* the host knows IPv6 */
        bool started;   /* PRIVATE works */
        bool only_ours; /* we made the host a router */
        int machine;    /* the namespace we are in */
        int proc;       /* a view of it, and how many it was used for */
        unsigned proc_uses;
        struct netlink route, filter;
        int news; /* of addresses */
        struct settling settling[SETTLING_MAX];
        unsigned n_settling;
        struct netlink_batch batch;
};

/* --- indices --- */

static void queue_init(struct queue *q, uint32_t max)
{
        *q = (struct queue){ .v = xcalloc(MAX_OF(max, 1U), sizeof(*q->v)), .max = max };
}

static void queue_push(struct queue *q, uint32_t index)
{
        ASSERT(q->n < q->max);
        q->v[(q->head + q->n++) % q->max] = index;
}

static uint32_t queue_pop(struct queue *q)
{
        uint32_t index = q->v[q->head];

        ASSERT(q->n > 0);
        q->head = (q->head + 1) % q->max;
        q->n--;
        return index;
}

static void kind_init(struct kind *k, uint32_t max, unsigned depth)
{
        k->slots = xcalloc(MAX_OF(max, 1U), sizeof(*k->slots));
        k->max = max;
        k->depth = MIN_OF(depth, max);
        queue_init(&k->free, max);
        queue_init(&k->ready, max);
        queue_init(&k->returned, max);
        for (uint32_t i = 0; i < max; i++)
                k->slots[i] = (struct slot){ -EBADF, FREE };
}

static void kind_done(struct kind *k)
{
        for (uint32_t i = 0; i < k->max; i++)
                k->slots[i].fd = fd_close(k->slots[i].fd);
        free(k->slots);
        free(k->free.v);
        free(k->ready.v);
        free(k->returned.v);
}

/* --- start and end --- */

void netns_pool_close(struct netns_pool *p)
{
        if (!p)
                return;
        for (size_t i = 0; i < NETNS_KINDS; i++)
                kind_done(&p->kinds[i]);
        netlink_close(&p->route);
        netlink_close(&p->filter);
        p->machine = fd_close(p->machine);
        p->proc = fd_close(p->proc);
        p->news = fd_close(p->news);
        for (unsigned i = 0; i < p->n_settling; i++)
                (void) fd_close(p->settling[i].news);
        free(p);
}

void netns_pool_closep(struct netns_pool **p)
{
        netns_pool_close(*p);
}

static int open_sockets(struct netns_pool *p, struct err *e)
{
        int r;

        p->machine = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
        if (p->machine < 0)
                return err_errno(e, -errno, "open the network namespace");
        r = netlink_open(NETLINK_ROUTE, &p->route);
        if (r == 0 && p->v6) {
                p->news = netns_socket(p->machine, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
                r = p->news < 0 ? p->news : link_watch_addresses(p->news);
        }
        return r < 0 ? err_errno(e, r, "ask the kernel for its links") : 0;
}

/* It may be there and switched off, for all links or for new ones. */
static bool has_v6(void)
{
        static const char *const paths[] = { "/proc/sys/net/ipv6/conf/all/disable_ipv6",
                                             "/proc/sys/net/ipv6/conf/default/disable_ipv6" };

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                char text[16];

                if (virtual_file_read(paths[i], text, sizeof(text)) < 1 || text[0] != '0')
                        return false;
        }
        return true;
}

int netns_pool_open(const struct netns_pool_config *c, struct netns_pool **ret, struct err *e)
{
        scoped(netns_pool_closep) struct netns_pool *p = xnew(struct netns_pool);
        int r;

        p->machine = p->proc = p->news = -EBADF;
        p->route = p->filter = NETLINK_NULL;
        if (c->n_services > NETRULES_SERVICES_MAX)
                return err_set(e, ERR_INVALID, "more than %d services for sandboxes",
                               NETRULES_SERVICES_MAX);
        p->addrs = c->addrs;
        p->v6 = has_v6();
        p->n_services = c->n_services;
        if (c->n_services > 0)
                memcpy(p->services, c->services, c->n_services * sizeof(*c->services));
        p->close_batch = MAX_OF(MIN_OF(c->close_batch, (unsigned) NETRULES_CHANGE_MAX), 1U);
        kind_init(&p->kinds[NETNS_KIND_NONE], c->none_max, c->depth[NETNS_KIND_NONE]);
        kind_init(&p->kinds[NETNS_KIND_PRIVATE],
                  c->depth[NETNS_KIND_PRIVATE] > 0 ? c->addrs.capacity : 0,
                  c->depth[NETNS_KIND_PRIVATE]);
        r = open_sockets(p, e);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}

int netns_pool_adopt(struct netns_pool *p, const struct pooled_netns *item)
{
        struct kind *k;

        if (item->kind >= NETNS_KINDS || item->index >= p->kinds[item->kind].max)
                return -EINVAL;
        k = &p->kinds[item->kind];
        if (k->slots[item->index].state != FREE)
                return -EEXIST;
        k->slots[item->index] = (struct slot){ item->fd, TAKEN };
        return 0;
}

struct leftovers {
        struct netns_pool *p;
        int found[NETRULES_CHANGE_MAX];
        unsigned n;
};

static int find_leftover(void *data, const char *name, int index)
{
        struct leftovers *l = data;
        int64_t i = addr_plan_index(&l->p->addrs, name);

        if (i < 0 || i >= l->p->kinds[NETNS_KIND_PRIVATE].max)
                return 0;
        if (l->p->kinds[NETNS_KIND_PRIVATE].slots[i].state != FREE)
                return 0;
        if (l->n < ARRAY_SIZE(l->found))
                l->found[l->n++] = index;
        return 0;
}

/* One may be on its way out already: the kernel takes the namespaces of a dead warden away. */
static int delete_links(struct netns_pool *p, const struct leftovers *l)
{
        int r;

        netlink_reset(&p->batch);
        for (unsigned i = 0; i < l->n; i++) {
                link_set_group(&p->batch, l->found[i], p->addrs.group);
                r = netlink_send(&p->route, &p->batch, NULL);
                if (r < 0 && r != -ENODEV)
                        return r;
        }
        link_delete_group(&p->batch, p->addrs.group);
        r = netlink_send(&p->route, &p->batch, NULL);
        return r == -ENODEV ? 0 : r;
}

/* At most as many as one list holds; 0 when there are none. */
static int sweep_some(struct netns_pool *p)
{
        struct leftovers l = { .p = p };
        int r = -EAGAIN;

        for (int i = 0; r == -EAGAIN && i < LIST_TRIES; i++) {
                l.n = 0;
                r = link_list(&p->route, &p->batch, p->addrs.prefix, find_leftover, &l);
        }
        if (r < 0 && r != -EAGAIN)
                return r;
        r = l.n > 0 ? delete_links(p, &l) : 0;
        return r < 0 ? r : (int) l.n;
}

int netns_pool_sweep(struct netns_pool *p)
{
        int r, n = 0;

        do {
                r = sweep_some(p);
                n += r > 0 ? r : 0;
        } while (r == NETRULES_CHANGE_MAX && n < ADDR_PLAN_INDEX_MAX);
        netns_pool_retry(p);
        return r < 0 ? r : n;
}

static int add_adopted(struct netns_pool *p)
{
        const struct kind *k = &p->kinds[NETNS_KIND_PRIVATE];
        uint32_t indices[NETRULES_CHANGE_MAX];
        struct netrules_change c = { indices, 0, false };
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < k->max; i++) {
                if (k->slots[i].state == TAKEN)
                        indices[c.n++] = i;
                if (c.n == ARRAY_SIZE(indices) || i + 1 == k->max) {
                        r = netrules_change(&p->filter, &p->batch, &p->addrs, &c);
                        c.n = 0;
                }
        }
        return r;
}

/* If we made it a router, then for sandboxes only; the rules of a former life of ours remember it. */
static int was_router(struct netns_pool *p)
{
        int only_ours = netrules_are_only_ours(&p->filter, &p->batch, &p->addrs);

        if (only_ours < 0 && only_ours != -ENOENT)
                return only_ours;
        return only_ours != 1
               && (ip_forward_is_on(AF_INET) == 1 || ip_forward_is_on(AF_INET6) == 1);
}

static int start_private(struct netns_pool *p, struct err *e)
{
        struct netrules rules = { &p->addrs, p->services, p->n_services, false };
        int r = netlink_open(NETLINK_NETFILTER, &p->filter);

        if (r < 0)
                return err_errno(e, r, "ask the kernel for its packet rules");
        r = subnet_check(&p->route, &p->batch, &p->addrs, /* strict= */ false, e);
        if (r < 0)
                return r;
        r = netns_pool_sweep(p);
        if (r < 0)
                return err_errno(e, r, "remove network links of former sandboxes");
        r = was_router(p);
        if (r >= 0) {
                rules.only_ours = p->only_ours = r == 0;
                r = netrules_install(&p->filter, &p->batch, &rules);
        }
        if (r == 0)
                r = add_adopted(p);
        if (r < 0)
                return err_errno(e, r, "put packet rules for sandboxes in place");
        r = ip_forward_enable(AF_INET);
        if (r == 0 && p->v6)
                r = ip_forward_enable(AF_INET6);
        return r < 0 ? err_errno(e, r, "turn on the forwarding of packets") : 0;
}

int netns_pool_start(struct netns_pool *p, struct err *e)
{
        int r = p->kinds[NETNS_KIND_PRIVATE].depth > 0 ? start_private(p, e) : 0;

        if (r < 0)
                p->kinds[NETNS_KIND_PRIVATE].depth = 0;
        p->started = p->kinds[NETNS_KIND_PRIVATE].depth > 0;
        for (size_t i = 0; i < NETNS_KINDS; i++)
                for (uint32_t index = 0; p->kinds[i].depth > 0 && index < p->kinds[i].max; index++)
                        if (p->kinds[i].slots[index].state == FREE)
                                queue_push(&p->kinds[i].free, index);
        return r;
}

static bool is_used(const struct kind *k)
{
        for (uint32_t i = 0; i < k->max; i++)
                if (k->slots[i].state == TAKEN)
                        return true;
        return false;
}

/* In this order: a host without the rules that keep its neighbours from using it as a router must
 * be none. */
int netns_pool_teardown(struct netns_pool *p)
{
        int r = 0;

        if (!p->started)
                return 0;
        if (is_used(&p->kinds[NETNS_KIND_PRIVATE]))
                return -EBUSY;
        if (p->only_ours)
                r = ip_forward_disable(AF_INET);
        if (r == 0 && p->only_ours && p->v6)
                r = ip_forward_disable(AF_INET6);
        return r == 0 ? netrules_remove(&p->filter, &p->batch, &p->addrs) : r;
}

/* --- making --- */

/* An index whose link is still there goes to the end of the queue. */
static int make_private_somewhere(struct netns_pool *p, int fd, uint32_t *ret_index)
{
        struct queue *q = &p->kinds[NETNS_KIND_PRIVATE].free;
        const struct veth_context ctx = { &p->addrs, p->machine, &p->route, &p->batch, p->v6 };
        scoped(veth_pair_close) struct veth_pair pair = VETH_PAIR_NULL;
        int r = veth_pair_open(&pair, &ctx, fd);

        ASSERT(p->n_settling < SETTLING_MAX);
        if (r < 0)
                return r;
        r = -EBUSY;
        for (int i = 0; r == -EBUSY && i < INDEX_TRIES && q->n > 0; i++) {
                uint32_t index = queue_pop(q);
                const struct netrules_change change = { &index, 1, false };

                r = veth_pair_make(&pair, index);
                if (r == 0)
                        r = netrules_change(&p->filter, &p->batch, &p->addrs, &change);
                if (r < 0) {
                        queue_push(q, index);
                        continue;
                }
                *ret_index = index;
                p->settling[p->n_settling++] =
                        (struct settling){ index, pair.link, TAKE_FD(pair.news), !p->v6, !p->v6 };
        }
        return r;
}

static int renew_proc(struct netns_pool *p)
{
        const struct mount_fs_spec m = { .type = "proc", .attrs = MOUNT_SAFE };
        int fd, r;

        if (p->proc >= 0 && p->proc_uses++ < PROC_USES)
                return 0;
        r = mount_new_fs(&m, &fd);
        if (r < 0)
                return r;
        (void) fd_close(p->proc);
        p->proc = fd;
        p->proc_uses = 0;
        return 0;
}

static void make_ready(struct kind *k, uint32_t index)
{
        k->slots[index].state = READY;
        queue_push(&k->ready, index);
}

/* Whatever fails: with its descriptor goes the namespace, and with that the link. */
static int begin(struct netns_pool *p, enum netns_kind kind)
{
        struct kind *k = &p->kinds[kind];
        scoped(fd_closep) int fd = -EBADF;
        uint32_t index;
        int r;

        if (k->free.n == 0)
                return -EBUSY;
        r = renew_proc(p);
        if (r == 0)
                r = netns_make_via(p->proc, &fd);
        if (r < 0)
                return r;
        if (kind == NETNS_KIND_PRIVATE)
                r = make_private_somewhere(p, fd, &index);
        else
                index = queue_pop(&k->free);
        if (r < 0)
                return r;
        k->slots[index] = (struct slot){ TAKE_FD(fd), SETTLING };
        if (kind != NETNS_KIND_PRIVATE)
                make_ready(k, index);
        return 0;
}

/* --- settling --- */

static void hear_machine(struct netns_pool *p)
{
        int link, r;

        while ((r = link_next_address(p->news, &link)) > 0)
                for (unsigned i = 0; i < p->n_settling; i++)
                        p->settling[i].machine |= p->settling[i].link == link;
        for (unsigned i = 0; r < 0 && i < p->n_settling; i++) /* lost: not worth to wait for */
                p->settling[i].machine = true;
}

static void settled(struct netns_pool *p, unsigned i)
{
        make_ready(&p->kinds[NETNS_KIND_PRIVATE], p->settling[i].index);
        (void) fd_close(p->settling[i].news);
        p->n_settling--;
        memmove(&p->settling[i], &p->settling[i + 1], (p->n_settling - i) * sizeof(p->settling[0]));
}

static void look_at_settling(struct netns_pool *p)
{
        int link;

        if (p->n_settling > 0 && p->v6)
                hear_machine(p);
        for (unsigned i = 0; i < p->n_settling;) {
                struct settling *s = &p->settling[i];

                if (!s->inside && link_next_address(s->news, &link) != 0)
                        s->inside = true;
                if (s->inside && s->machine)
                        settled(p, i);
                else
                        i++;
        }
}

/* For the oldest; it is good enough if nothing is heard of it for long. */
static void wait_for_settling(struct netns_pool *p)
{
        const struct settling *s = &p->settling[0];
        struct pollfd fd = { .fd = s->inside ? p->news : s->news, .events = POLLIN };

        if (poll(&fd, 1, SETTLE_MAX) == 0)
                settled(p, 0);
        look_at_settling(p);
}

int netns_pool_make(struct netns_pool *p, enum netns_kind kind)
{
        int r;

        while (p->n_settling > 0)
                wait_for_settling(p);
        r = begin(p, kind);
        look_at_settling(p);
        while (p->n_settling > 0)
                wait_for_settling(p);
        return r;
}

/* --- closing --- */

/* An element that is not there spoils the others' removal, so that they go one by one. */
static int remove_elements(struct netns_pool *p, const uint32_t *indices, size_t n)
{
        const struct netrules_change all = { indices, n, true };
        int r = netrules_change(&p->filter, &p->batch, &p->addrs, &all);

        for (size_t i = 0; r == -ENOENT && i < n; i++) {
                const struct netrules_change one = { &indices[i], 1, true };
                int r_one = netrules_change(&p->filter, &p->batch, &p->addrs, &one);

                if (r_one < 0 && r_one != -ENOENT)
                        return r_one;
                if (i + 1 == n)
                        r = 0;
        }
        return r;
}

static bool is_closing(void *data, const struct link_addr *source)
{
        const struct netns_pool *p = data;
        int64_t i = addr_plan_index_of_addr(&p->addrs, source);

        return i >= 0 && p->kinds[NETNS_KIND_PRIVATE].slots[i].state == CLOSING;
}

/* Nor is anything left of what it has begun. A kernel that can't be told forgets by itself, later. */
static int forget(struct netns_pool *p, const uint32_t *indices, size_t n)
{
        int r = remove_elements(p, indices, n);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                p->kinds[NETNS_KIND_PRIVATE].slots[indices[i]].state = CLOSING;
        (void) !conntrack_delete(&p->filter, &p->batch, is_closing, p);
        return 0;
}

/* First nothing gets through any more, then the namespaces go, all in one go of the kernel's
 * worker, which collects what is closed while it waits. */
static int close_returned(struct netns_pool *p, enum netns_kind kind)
{
        struct kind *k = &p->kinds[kind];
        uint32_t indices[NETRULES_CHANGE_MAX];
        size_t n = MIN_OF((size_t) k->returned.n, ARRAY_SIZE(indices));
        int r = 0;

        for (size_t i = 0; i < n; i++)
                indices[i] = queue_pop(&k->returned);
        if (kind == NETNS_KIND_PRIVATE && p->started)
                r = forget(p, indices, n);
        for (size_t i = 0; i < n; i++) {
                struct slot *s = &k->slots[indices[i]];

                if (r < 0) {
                        queue_push(&k->returned, indices[i]);
                        continue;
                }
                *s = (struct slot){ fd_close(s->fd), FREE };
                queue_push(&k->free, indices[i]);
        }
        return r;
}

/* --- in the background --- */

/* The kind that lacks most, or -1. */
static int lacking(const struct netns_pool *p)
{
        int kind = -1;
        uint64_t most = 0;

        for (int i = 0; i < NETNS_KINDS; i++) {
                const struct kind *k = &p->kinds[i];
                const uint32_t has = k->ready.n + (i == NETNS_KIND_PRIVATE ? p->n_settling : 0);
                uint64_t lacks = has < k->depth && k->error == 0
                                         ? (uint64_t) (k->depth - has) * 1000 / k->depth + 1
                                         : 0;

                if (lacks > most) {
                        most = lacks;
                        kind = i;
                }
        }
        return kind;
}

static int close_from(struct netns_pool *p, unsigned least)
{
        for (int i = 0; i < NETNS_KINDS; i++)
                if (p->kinds[i].returned.n >= least) {
                        int r = close_returned(p, (enum netns_kind) i);

                        return r < 0 ? r : 1;
                }
        return 0;
}

int netns_pool_step(struct netns_pool *p)
{
        int kind, r = close_from(p, p->close_batch);

        if (r != 0)
                return r;
        look_at_settling(p);
        kind = lacking(p);
        if (p->n_settling == SETTLING_MAX || (kind < 0 && p->n_settling > 0)) {
                wait_for_settling(p);
                return 1;
        }
        if (kind < 0)
                return 0;
        r = begin(p, (enum netns_kind) kind);
        if (r == -EBUSY && close_from(p, 1) == 1) /* what has come back may be what is missing */
                return 1;
        p->kinds[kind].error = r;
        return r < 0 ? r : 1;
}

int netns_pool_error(const struct netns_pool *p, enum netns_kind kind)
{
        return p->kinds[kind].error;
}

void netns_pool_retry(struct netns_pool *p)
{
        for (size_t i = 0; i < NETNS_KINDS; i++)
                p->kinds[i].error = 0;
}

int netns_pool_flush(struct netns_pool *p)
{
        int r;

        do
                r = close_from(p, 1);
        while (r == 1);
        return r;
}

/* --- for sandboxes --- */

int netns_pool_take(struct netns_pool *p, enum netns_kind kind, struct pooled_netns *ret)
{
        struct kind *k = &p->kinds[kind];
        uint32_t index;

        if (k->ready.n == 0)
                return -EAGAIN;
        index = queue_pop(&k->ready);
        k->slots[index].state = TAKEN;
        *ret = (struct pooled_netns){ kind, index, k->slots[index].fd };
        return 0;
}

void netns_pool_return(struct netns_pool *p, const struct pooled_netns *item)
{
        struct kind *k = &p->kinds[item->kind];

        if (item->index >= k->max || k->slots[item->index].state != TAKEN)
                return;
        k->slots[item->index].state = RETURNED;
        queue_push(&k->returned, item->index);
}

/* --- to look at --- */

unsigned netns_pool_n_ready(const struct netns_pool *p, enum netns_kind kind)
{
        return p->kinds[kind].ready.n;
}

int netns_pool_peek(const struct netns_pool *p, enum netns_kind kind, unsigned n,
                    struct pooled_netns *ret)
{
        const struct kind *k = &p->kinds[kind];
        uint32_t index;

        if (n >= k->ready.n)
                return -ENOENT;
        index = k->ready.v[(k->ready.head + n) % k->ready.max];
        *ret = (struct pooled_netns){ kind, index, k->slots[index].fd };
        return 0;
}

unsigned netns_pool_n_returned(const struct netns_pool *p)
{
        return p->kinds[NETNS_KIND_NONE].returned.n + p->kinds[NETNS_KIND_PRIVATE].returned.n;
}
