/* SPDX-License-Identifier: Apache-2.0 */
#include "store/nats_protocol.h"

#include "base/base.h"

void nats_frame_add(struct buf *b, struct nats_frame f)
{
        f.head.n = (uint32_t) (sizeof(f.head) + f.first.n + f.second.n);
        f.head.first = (uint32_t) f.first.n;
        buf_add(b, &f.head, sizeof(f.head));
        buf_add_str(b, f.first);
        buf_add_str(b, f.second);
}

ssize_t nats_frame_read(struct str text, struct nats_frame *ret)
{
        struct nats_frame f;
        size_t body;

        if (text.n < sizeof(f.head))
                return 0;
        memcpy(&f.head, text.p, sizeof(f.head));
        if (f.head.n < sizeof(f.head) || f.head.n > NATS_FRAME_MAX)
                return -EBADMSG;
        body = f.head.n - sizeof(f.head);
        if (f.head.first > body)
                return -EBADMSG;
        if (text.n < f.head.n)
                return 0;
        f.first = str_of(text.p + sizeof(f.head), f.head.first);
        f.second = str_of(f.first.p + f.first.n, body - f.first.n);
        *ret = f;
        return (ssize_t) f.head.n;
}

void nats_entry_add(struct buf *b, struct store_entry entry)
{
        struct nats_entry_head head = { .version = entry.version,
                                        .key = (uint32_t) entry.key.n,
                                        .value = (uint32_t) entry.value.n };

        buf_add(b, &head, sizeof(head));
        buf_add_str(b, entry.key);
        buf_add_str(b, entry.value);
}

int nats_entry_take(struct str *text, struct store_entry *ret)
{
        struct nats_entry_head head;
        const char *p = text->p;
        size_t left = text->n;

        if (left == 0)
                return 0;
        if (left < sizeof(head))
                return -EBADMSG;
        memcpy(&head, p, sizeof(head));
        p += sizeof(head);
        left -= sizeof(head);
        if (head.key > left || head.value > left - head.key)
                return -EBADMSG;
        *ret = (struct store_entry){ .version = head.version,
                                     .key = str_of(p, head.key),
                                     .value = str_of(p + head.key, head.value) };
        *text = str_of(p + head.key + head.value, left - head.key - head.value);
        return 1;
}
