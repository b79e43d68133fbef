/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netlink.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

/* A dump comes in pieces of at most this size. */
#define REPLY_MAX (32 * KiB)

#define ALIGN(n) (((n) + NLMSG_ALIGNTO - 1) & ~((size_t) NLMSG_ALIGNTO - 1))

/* --- a batch --- */

static_assert(NLMSG_ALIGNTO == NLA_ALIGNTO, "one alignment for both");

void netlink_reset(struct netlink_batch *b)
{
        b->n = b->start = 0;
        b->messages = b->acks = 0;
        b->failed = false;
}

void *netlink_reserve(struct netlink_batch *b, size_t n)
{
        size_t at = b->n;

        if (b->failed || n > sizeof(b->bytes) || ALIGN(n) > sizeof(b->bytes) - at) {
                b->failed = true;
                return NULL;
        }
        memset(b->bytes + at, 0, ALIGN(n));
        b->n += ALIGN(n);
        if (b->messages > 0)
                ((struct nlmsghdr *) (void *) (b->bytes + b->start))->nlmsg_len =
                        (uint32_t) (b->n - b->start);
        return b->bytes + at;
}

void netlink_begin(struct netlink_batch *b, const struct netlink_head *h, const void *fixed,
                   size_t n)
{
        struct nlmsghdr *m;

        if (b->messages == NETLINK_MESSAGES_MAX)
                b->failed = true;
        if (b->failed || n > sizeof(b->bytes)
            || NLMSG_HDRLEN + ALIGN(n) > sizeof(b->bytes) - b->n) {
                b->failed = true;
                return;
        }
        b->start = b->n;
        b->messages++;
        b->acks += !h->silent;
        m = netlink_reserve(b, NLMSG_HDRLEN + n);
        if (!m)
                return;
        m->nlmsg_type = h->type;
        m->nlmsg_flags = h->flags | NLM_F_REQUEST | (h->silent ? 0 : NLM_F_ACK);
        memcpy((char *) m + NLMSG_HDRLEN, fixed, n);
}

static struct nlattr *add_head(struct netlink_batch *b, uint16_t type, size_t n)
{
        struct nlattr *a;

        if (n > UINT16_MAX - NLA_HDRLEN)
                b->failed = true;
        a = netlink_reserve(b, NLA_HDRLEN + n);
        if (a)
                *a = (struct nlattr){ .nla_len = (uint16_t) (NLA_HDRLEN + n), .nla_type = type };
        return a;
}

void netlink_add(struct netlink_batch *b, uint16_t type, const void *p, size_t n)
{
        struct nlattr *a = add_head(b, type, n);

        if (a)
                memcpy((char *) a + NLA_HDRLEN, p, n);
}

void netlink_add_str(struct netlink_batch *b, uint16_t type, const char *z)
{
        netlink_add(b, type, z, strlen(z) + 1);
}

void netlink_add_u8(struct netlink_batch *b, uint16_t type, uint8_t v)
{
        netlink_add(b, type, &v, sizeof(v));
}

void netlink_add_u32(struct netlink_batch *b, uint16_t type, uint32_t v)
{
        netlink_add(b, type, &v, sizeof(v));
}

void netlink_add_be32(struct netlink_batch *b, uint16_t type, uint32_t v)
{
        netlink_add_u32(b, type, htonl(v));
}

size_t netlink_nest(struct netlink_batch *b, uint16_t type)
{
        size_t at = b->n;

        (void) add_head(b, type | NLA_F_NESTED, 0);
        return at;
}

void netlink_nest_end(struct netlink_batch *b, size_t at)
{
        struct nlattr *a = (struct nlattr *) (void *) (b->bytes + at);

        if (b->failed)
                return;
        if (b->n - at > UINT16_MAX)
                b->failed = true;
        else
                a->nla_len = (uint16_t) (b->n - at);
}

/* --- a socket --- */

int netlink_adopt(int fd, struct netlink *ret)
{
        /* Without it an error carries the failed message, however long. */
        if (setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &(int){ 1 }, sizeof(int)) < 0) {
                int r = -errno;

                (void) fd_close(fd);
                return r;
        }
        *ret = (struct netlink){ fd, 1 };
        return 0;
}

int netlink_open(int family, struct netlink *ret)
{
        int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, family);

        return fd < 0 ? -errno : netlink_adopt(fd, ret);
}

void netlink_close(struct netlink *nl)
{
        nl->fd = fd_close(nl->fd);
}

/* Sets the sequence numbers and sends. */
static int transmit(struct netlink *nl, struct netlink_batch *b, uint32_t *ret_first)
{
        struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
        ssize_t n;

        if (b->failed || b->n == 0)
                return -EMSGSIZE;
        *ret_first = nl->next;
        for (size_t at = 0; at < b->n;) {
                struct nlmsghdr *h = (struct nlmsghdr *) (void *) (b->bytes + at);

                h->nlmsg_seq = nl->next++;
                at += ALIGN(h->nlmsg_len);
        }
        do
                n = sendto(nl->fd, b->bytes, b->n, MSG_NOSIGNAL, (struct sockaddr *) &kernel,
                           sizeof(kernel));
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : 0;
}

/* All replies are there when sending returns, so it does not wait. Other processes may write to a netlink
 * socket, too: their port id is not 0. */
static ssize_t receive(const struct netlink *nl, struct iovec into)
{
        for (;;) {
                struct sockaddr_nl from = { 0 };
                struct msghdr m = { .msg_name = &from,
                                    .msg_namelen = sizeof(from),
                                    .msg_iov = &into,
                                    .msg_iovlen = 1 };
                ssize_t n = recvmsg(nl->fd, &m, MSG_DONTWAIT);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (from.nl_pid != 0)
                        continue;
                return m.msg_flags & MSG_TRUNC ? -EPROTO : n;
        }
}

static const struct nlmsghdr *next_message(const char *p, size_t n, size_t *at)
{
        const struct nlmsghdr *h = (const struct nlmsghdr *) (const void *) (p + *at);

        if (*at > n || n - *at < sizeof(*h) || h->nlmsg_len < sizeof(*h) || h->nlmsg_len > n - *at)
                return NULL;
        *at += ALIGN(h->nlmsg_len);
        return h;
}

/* 0 for an acknowledgement. */
static int error_of(const struct nlmsghdr *h)
{
        const struct nlmsgerr *e = NLMSG_DATA(h);

        if (h->nlmsg_len < NLMSG_LENGTH(sizeof(e->error)))
                return -EPROTO;
        return e->error > 0 ? -EPROTO : e->error;
}

struct batch_result {
        uint32_t first; /* sequence number of the first message */
        unsigned acks;
        unsigned failed; /* index of the first one that failed */
        int error;
};

static void take_ack(struct batch_result *v, const struct nlmsghdr *h)
{
        uint32_t index = h->nlmsg_seq - v->first;
        int r;

        /* From an earlier batch, or another kind of message. */
        if (h->nlmsg_type != NLMSG_ERROR || index >= NETLINK_MESSAGES_MAX)
                return;
        r = error_of(h);
        v->acks++;
        if (r < 0 && (v->error == 0 || index < v->failed)) {
                v->error = r;
                v->failed = index;
        }
}

int netlink_send(struct netlink *nl, struct netlink_batch *b, unsigned *ret_failed)
{
        _Alignas(struct nlmsghdr) char reply[4 * KiB];
        struct batch_result v = { 0 };
        unsigned expected = b->acks;
        ssize_t n;
        int r;

        r = transmit(nl, b, &v.first);
        netlink_reset(b);
        if (r < 0)
                return r;
        while ((n = receive(nl, (struct iovec){ reply, sizeof(reply) })) >= 0) {
                const struct nlmsghdr *h;
                size_t at = 0;

                while ((h = next_message(reply, (size_t) n, &at)))
                        take_ack(&v, h);
        }
        if (v.error == 0 && n != -EAGAIN)
                return (int) n;
        if (v.error < 0 && ret_failed)
                *ret_failed = v.failed;
        if (v.error < 0)
                return v.error;
        return v.acks < expected ? -EPROTO : 0;
}

/* --- lists --- */

struct listing {
        netlink_each_fn *fn;
        void *data;
        uint32_t number;
        int error;
        bool changed;
        bool done;
};

static void list_one(struct listing *l, const struct nlmsghdr *h)
{
        if (h->nlmsg_seq != l->number)
                return;
        l->changed |= (h->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
        if (h->nlmsg_type == NLMSG_ERROR || h->nlmsg_type == NLMSG_DONE) {
                int r = error_of(h);

                l->done = true;
                if (r < 0 && l->error == 0)
                        l->error = r;
                return;
        }
        if (l->error == 0)
                l->error = l->fn(l->data, h);
}

int netlink_list(struct netlink *nl, struct netlink_batch *b, netlink_each_fn *fn, void *data)
{
        scoped(freep) char *reply = xcalloc(1, REPLY_MAX);
        struct listing l = { .fn = fn, .data = data };
        int r;

        /* An ack would be taken for the end of the dump. */
        r = b->messages == 1 && b->acks == 0 ? transmit(nl, b, &l.number) : -EINVAL;
        netlink_reset(b);
        if (r < 0)
                return r;
        while (!l.done) {
                ssize_t n = receive(nl, (struct iovec){ reply, REPLY_MAX });
                const struct nlmsghdr *h;
                size_t at = 0;

                if (n < 0)
                        return n == -EAGAIN ? -EPROTO : (int) n;
                while (!l.done && (h = next_message(reply, (size_t) n, &at)))
                        list_one(&l, h);
        }
        if (l.error < 0)
                return l.error;
        return l.changed ? -EAGAIN : 0;
}

const struct nlattr *netlink_find_attr(const char *p, size_t n, uint16_t type)
{
        size_t at = 0;

        while (at + NLA_HDRLEN <= n) {
                const struct nlattr *a = (const struct nlattr *) (const void *) (p + at);

                if (a->nla_len < NLA_HDRLEN || a->nla_len > n - at)
                        return NULL;
                if ((a->nla_type & NLA_TYPE_MASK) == type)
                        return a;
                at += ALIGN(a->nla_len);
        }
        return NULL;
}

const struct nlattr *netlink_find_nested(const struct nlattr *a, uint16_t type)
{
        return a ? netlink_find_attr((const char *) a + NLA_HDRLEN, a->nla_len - NLA_HDRLEN, type)
                 : NULL;
}

const void *netlink_find(const struct nlmsghdr *h, size_t fixed, uint16_t type, size_t size)
{
        size_t head = NLMSG_HDRLEN + ALIGN(fixed);
        const struct nlattr *a = h->nlmsg_len < head ? NULL
                                                     : netlink_find_attr((const char *) h + head,
                                                                         h->nlmsg_len - head, type);

        return a && a->nla_len >= NLA_HDRLEN + size ? (const char *) a + NLA_HDRLEN : NULL;
}
