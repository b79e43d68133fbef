/* SPDX-License-Identifier: Apache-2.0 */
#include "store/nats_protocol.h"

#include "base/base.h"
#include "base/codec.h"

void nats_message_add(struct buf *b, const struct nats_message *m)
{
        codec_put_u64(b, m->request_id);
        codec_put_u32(b, m->what);
        codec_put_u64(b, m->version);
        codec_put_u32(b, m->limit);
        codec_put_str(b, m->first);
        codec_put_str(b, m->second);
}

int nats_message_read(struct str bytes, struct nats_message *ret)
{
        struct codec_reader r = { .left = bytes };
        struct nats_message m;

        m.request_id = codec_u64(&r);
        m.what = codec_u32(&r);
        m.version = codec_u64(&r);
        m.limit = codec_u32(&r);
        m.first = codec_str(&r);
        m.second = codec_str(&r);
        if (!codec_complete(&r))
                return -EBADMSG;
        *ret = m;
        return 0;
}

void nats_frame_add(struct buf *b, const struct nats_message *m)
{
        codec_put_u32(b, NATS_MESSAGE_COST + m->first.n + m->second.n);
        nats_message_add(b, m);
}

ssize_t nats_frame_read(struct str text, struct nats_message *ret)
{
        struct codec_reader r = { .left = text };
        size_t n = codec_u32(&r);
        int e;

        if (r.failed)
                return 0;
        if (n < NATS_MESSAGE_COST || n > NATS_MESSAGE_MAX)
                return -EBADMSG;
        if (r.left.n < n)
                return 0;
        e = nats_message_read(str_of(r.left.p, n), ret);
        return e < 0 ? e : (ssize_t) (4 + n);
}

void nats_entry_add(struct buf *b, struct store_entry entry)
{
        codec_put_u64(b, entry.version);
        codec_put_str(b, entry.key);
        codec_put_str(b, entry.value);
}

int nats_entry_take(struct str *text, struct store_entry *ret)
{
        struct codec_reader r = { .left = *text };
        struct store_entry entry;

        if (text->n == 0)
                return 0;
        entry.version = codec_u64(&r);
        entry.key = codec_str(&r);
        entry.value = codec_str(&r);
        if (r.failed)
                return -EBADMSG;
        *text = r.left;
        *ret = entry;
        return 1;
}
