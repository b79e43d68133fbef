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

/*
 * Theory of operation.
 *
 * A slot per index and kind: FREE ─► SETTLING ─► READY ─► TAKEN ─► RETURNED ─► CLOSING ─► FREE.
 *
 * The invariant: the pool holds the descriptor of every namespace from its making until it is closed, also
 * while a sandbox uses it. Without it the kernel would destroy a namespace when its last process exits, one at
 * a time, holding the lock of all links. So namespaces are destroyed when we close them: in batches, and not
 * while others are made.
 *
 * Order of making one of PRIVATE: namespace, veth pair with addresses on both ends, element of the packet rules,
 * then SETTLING until the kernel reports that both IPv6 addresses have routes; before that a first packet
 * could be lost. Up to SETTLING_MAX namespaces settle at a time. If a step fails, closing the namespace also
 * deletes the link.
 *
 * Order of closing: first the elements of the packet rules and the tracked connections go, so that nothing gets
 * through and nothing of the old owner reaches the next; then the namespace. Its index is reused as late
 * as possible, and only when its link is gone: a connection that is being closed keeps a namespace alive for
 * minutes.
 *
 * A crash leaves namespaces of sandboxes, which netns_pool_adopt finds again, and links of the others, which
 * netns_pool_start deletes by their names.
 */

#define LIST_TRIES   5
#define INDEX_TRIES  8
#define SETTLE_MAX   50 /* milliseconds */
#define SETTLING_MAX 16
#define PROC_USES    64   /* see netns_make_via */
#define QUEUE_SHORT  1024 /* entries */

/* A queue of indices. */
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

/* One of PRIVATE: a worker of the kernel makes the routes of its new IPv6 addresses. */
struct settling {
        uint32_t index;
        int link;        /* the host's end */
        int addr_events; /* of addresses inside */
        bool inside_ready, host_ready;
};

struct netns_pool {
        struct addr_plan addrs;
        struct netrules_service services[NETRULES_SERVICES_MAX];
        size_t n_services;
        unsigned close_batch;
        struct kind kinds[NETNS_KINDS];
        bool v6;        /* IPv6 is available */
        bool started;   /* PRIVATE works */
        bool only_ours; /* we turned forwarding on */
        int host_netns; /* the namespace of the caller */
        int proc;       /* a mount of /proc, and for how many namespaces it was used */
        unsigned proc_uses;
        struct netlink route, filter;
        int addr_events;
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
        /* A short one stays in its first pages, instead of touching all of them in the course of time. */
        if (q->head >= QUEUE_SHORT && q->n <= QUEUE_SHORT && q->head + q->n <= q->max) {
                memmove(q->v, q->v + q->head, q->n * sizeof(*q->v));
                q->head = 0;
        }
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

/* --- life cycle --- */

void netns_pool_close(struct netns_pool *p)
{
        if (!p)
                return;
        for (struct kind *k = p->kinds; k < p->kinds + NETNS_KINDS; k++) {
                for (uint32_t i = 0; i < k->max; i++)
                        k->slots[i].fd = fd_close(k->slots[i].fd);
                free(k->slots);
                free(k->free.v);
                free(k->ready.v);
                free(k->returned.v);
        }
        netlink_close(&p->route);
        netlink_close(&p->filter);
        p->host_netns = fd_close(p->host_netns);
        p->proc = fd_close(p->proc);
        p->addr_events = fd_close(p->addr_events);
        for (unsigned i = 0; i < p->n_settling; i++)
                (void) fd_close(p->settling[i].addr_events);
        free(p);
}

void netns_pool_closep(struct netns_pool **p)
{
        netns_pool_close(*p);
}

/* IPv6 can be switched off for all links, or for new ones. */
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

        p->host_netns = p->proc = p->addr_events = -EBADF;
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
        p->host_netns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
        if (p->host_netns < 0)
                return err_errno(e, -errno, "open the network namespace");
        r = netlink_open(NETLINK_ROUTE, &p->route);
        if (r == 0 && p->v6) {
                p->addr_events = netns_socket(p->host_netns, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
                r = p->addr_events < 0 ? p->addr_events : link_watch_addresses(p->addr_events);
        }
        if (r < 0)
                return err_errno(e, r, "open a socket for links");
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

/* Returns how many links it has deleted; NETRULES_CHANGE_MAX: there may be more. -ENODEV of a link: the kernel is
 * destroying the namespace of a dead warden. */
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
        if (l.n == 0)
                return 0;
        netlink_reset(&p->batch);
        for (unsigned i = 0; i < l.n; i++) {
                link_set_group(&p->batch, l.found[i], p->addrs.group);
                r = netlink_send(&p->route, &p->batch, NULL);
                if (r < 0 && r != -ENODEV)
                        return r;
        }
        link_delete_group(&p->batch, p->addrs.group);
        r = netlink_send(&p->route, &p->batch, NULL);
        return r < 0 && r != -ENODEV ? r : (int) l.n;
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

/* If forwarding was off before us and we turned it on, the policy of our rules says so. */
static int start_private(struct netns_pool *p, struct err *e)
{
        struct netrules rules = { &p->addrs, p->services, p->n_services, false };
        int r = netlink_open(NETLINK_NETFILTER, &p->filter);

        if (r < 0)
                return err_errno(e, r, "open a socket for packet rules");
        r = subnet_check(&p->route, &p->batch, &p->addrs, /* strict= */ false, e);
        if (r < 0)
                return r;
        r = netns_pool_sweep(p);
        if (r < 0)
                return err_errno(e, r, "remove the links of earlier sandboxes");
        r = netrules_are_only_ours(&p->filter, &p->batch, &p->addrs);
        if (r >= 0 || r == -ENOENT) {
                rules.only_ours = p->only_ours =
                        r == 1
                        || (ip_forward_is_on(AF_INET) != 1 && ip_forward_is_on(AF_INET6) != 1);
                r = netrules_install(&p->filter, &p->batch, &rules);
        }
        if (r == 0)
                r = add_adopted(p);
        if (r < 0)
                return err_errno(e, r, "install the packet rules");
        r = ip_forward_enable(AF_INET);
        if (r == 0 && p->v6)
                r = ip_forward_enable(AF_INET6);
        return r < 0 ? err_errno(e, r, "turn on IP forwarding") : 0;
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

/* Forwarding first: without the rules, the neighbours of the host could use it as a router. */
int netns_pool_teardown(struct netns_pool *p)
{
        int r = 0;

        if (!p->started)
                return 0;
        for (uint32_t i = 0; i < p->kinds[NETNS_KIND_PRIVATE].max; i++)
                if (p->kinds[NETNS_KIND_PRIVATE].slots[i].state == TAKEN)
                        return -EBUSY;
        if (p->only_ours)
                r = ip_forward_disable(AF_INET);
        if (r == 0 && p->only_ours && p->v6)
                r = ip_forward_disable(AF_INET6);
        return r == 0 ? netrules_remove(&p->filter, &p->batch, &p->addrs) : r;
}

/* --- making --- */

/* An index whose link still exists goes to the end of the queue. */
static int make_private(struct netns_pool *p, int fd, uint32_t *ret_index)
{
        struct queue *q = &p->kinds[NETNS_KIND_PRIVATE].free;
        const struct veth_context ctx = { &p->addrs, p->host_netns, &p->route, &p->batch, p->v6 };
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
                p->settling[p->n_settling++] = (struct settling){ index, pair.link,
                                                                  TAKE_FD(pair.addr_events), !p->v6,
                                                                  !p->v6 };
        }
        return r;
}

static void make_ready(struct kind *k, uint32_t index)
{
        k->slots[index].state = READY;
        queue_push(&k->ready, index);
}

/* If a step fails, the namespace is closed, and with it the link. */
static int begin(struct netns_pool *p, enum netns_kind kind)
{
        const struct mount_fs_spec proc = { .type = "proc", .attrs = MOUNT_SAFE };
        struct kind *k = &p->kinds[kind];
        scoped(fd_closep) int fd = -EBADF;
        uint32_t index;
        int fresh, r;

        if (k->free.n == 0)
                return -EBUSY;
        if (p->proc < 0 || p->proc_uses++ >= PROC_USES) {
                r = mount_new_fs(&proc, &fresh);
                if (r < 0)
                        return r;
                (void) fd_close(p->proc);
                p->proc = fresh;
                p->proc_uses = 0;
        }
        r = netns_make_via(p->proc, &fd);
        if (r < 0)
                return r;
        if (kind == NETNS_KIND_PRIVATE)
                r = make_private(p, fd, &index);
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

static void settled(struct netns_pool *p, unsigned i)
{
        make_ready(&p->kinds[NETNS_KIND_PRIVATE], p->settling[i].index);
        (void) fd_close(p->settling[i].addr_events);
        p->n_settling--;
        memmove(&p->settling[i], &p->settling[i + 1], (p->n_settling - i) * sizeof(p->settling[0]));
}

static void check_settling(struct netns_pool *p)
{
        int link, r = 0;

        while (p->n_settling > 0 && p->v6 && (r = link_next_address(p->addr_events, &link)) > 0)
                for (unsigned i = 0; i < p->n_settling; i++)
                        p->settling[i].host_ready |= p->settling[i].link == link;
        for (unsigned i = 0; i < p->n_settling;) {
                struct settling *s = &p->settling[i];

                s->host_ready |= r < 0; /* events were lost: do not wait */
                if (!s->inside_ready && link_next_address(s->addr_events, &link) != 0)
                        s->inside_ready = true;
                if (s->inside_ready && s->host_ready)
                        settled(p, i);
                else
                        i++;
        }
}

/* For the oldest, which is considered ready after SETTLE_MAX. */
static void wait_for_settling(struct netns_pool *p)
{
        const struct settling *s = &p->settling[0];
        struct pollfd fd = { .fd = s->inside_ready ? p->addr_events : s->addr_events,
                             .events = POLLIN };

        if (poll(&fd, 1, SETTLE_MAX) == 0)
                settled(p, 0);
        check_settling(p);
}

int netns_pool_make(struct netns_pool *p, enum netns_kind kind)
{
        int r;

        while (p->n_settling > 0)
                wait_for_settling(p);
        r = begin(p, kind);
        check_settling(p);
        while (p->n_settling > 0)
                wait_for_settling(p);
        return r;
}

/* --- closing --- */

/* A missing element makes the removal of all others fail; then they are removed one by one. */
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

/* Closes a batch of the first kind of which at least `least` were returned: the kernel destroys all namespaces that are
 * closed while its worker waits in one go. Tracked connections that can't be deleted expire. 1: closed some; 0: there
 * are not so many. */
static int close_returned(struct netns_pool *p, unsigned least)
{
        struct kind *k = p->kinds;
        uint32_t indices[NETRULES_CHANGE_MAX];
        bool private;
        size_t n;
        int r = 0;

        while (k < p->kinds + NETNS_KINDS && k->returned.n < least)
                k++;
        if (k == p->kinds + NETNS_KINDS)
                return 0;
        private = k == &p->kinds[NETNS_KIND_PRIVATE] && p->started;
        n = MIN_OF((size_t) k->returned.n, ARRAY_SIZE(indices));
        for (size_t i = 0; i < n; i++)
                indices[i] = queue_pop(&k->returned);
        if (private)
                r = remove_elements(p, indices, n);
        if (r < 0) {
                for (size_t i = 0; i < n; i++)
                        queue_push(&k->returned, indices[i]);
                return r;
        }
        for (size_t i = 0; i < n; i++)
                k->slots[indices[i]].state = CLOSING;
        if (private)
                (void) !conntrack_delete(&p->filter, &p->batch, is_closing, p);
        for (size_t i = 0; i < n; i++) {
                struct slot *s = &k->slots[indices[i]];

                *s = (struct slot){ fd_close(s->fd), FREE };
                queue_push(&k->free, indices[i]);
        }
        return 1;
}

/* --- in the background --- */

/* The kind whose pool is emptiest, relative to its depth; -1: all are full. */
static int emptiest_kind(const struct netns_pool *p)
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

int netns_pool_step(struct netns_pool *p)
{
        int kind, r = close_returned(p, p->close_batch);

        if (r != 0)
                return r;
        check_settling(p);
        kind = emptiest_kind(p);
        if (p->n_settling == SETTLING_MAX || (kind < 0 && p->n_settling > 0)) {
                wait_for_settling(p);
                return 1;
        }
        if (kind < 0)
                return 0;
        r = begin(p, (enum netns_kind) kind);
        /* The returned ones may have the indices that are missing. */
        if (r == -EBUSY && close_returned(p, 1) == 1)
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
                r = close_returned(p, 1);
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

/* --- queries --- */

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
