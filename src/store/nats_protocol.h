/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_NATS_PROTOCOL_H
#define HUTCH_STORE_NATS_PROTOCOL_H

/*
 * What hutchd and hutch-store-nats say to each other, over a stream socket.
 *
 * A frame is a head of fixed size in the machine's own order of bytes (both are on one machine, and of one build), a
 * first and a second piece of bytes. hutchd asks, with a request_id; the answer has the same. Answers come in any
 * order. Ticket 0 is about the connection: one answer without a code once requests can be carried out, and at any
 * time one with a code and the reason, which is the last.
 *
 *                   first               second                answer
 *         get       key                                       value, version
 *         put       key                 value                 version
 *         remove    key                                       -
 *         cas       key                 value                 version
 *         scan      prefix              after                 entries: heads of their own, key, value
 *
 * An answer with a code has the message.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "store/store.h"

struct nats_head {
        uint32_t n;    /* bytes of the whole frame */
        uint32_t what; /* enum store_call; of an answer: 0, or 1 and an enum err_code */
        uint64_t request_id;
        uint64_t version; /* expected, or given */
        uint32_t limit;   /* of a scan; of its answer: whether there is more */
        uint32_t first;   /* bytes of the first piece; the second is the rest */
};

struct nats_entry_head {
        uint64_t version;
        uint32_t key, value;
};

#define NATS_ENTRY_COST (sizeof(struct nats_entry_head))
#define NATS_FRAME_MAX \
        (sizeof(struct nats_head) + STORE_SCAN_BYTES_MAX + STORE_SCAN_MAX * NATS_ENTRY_COST)

struct nats_frame {
        struct nats_head head;
        struct str first, second;
};

/* Appends; head.n and head.first are filled in. */
void nats_frame_add(struct buf *b, struct nats_frame f);

/* Bytes of the frame that the text begins with, with its views in the text; 0 if it is not all there yet;
 * -EBADMSG if it is none. */
ssize_t nats_frame_read(struct str text, struct nats_frame *ret) must_check;

void nats_entry_add(struct buf *b, struct store_entry entry);

/* Takes an entry from the front: 1, 0 at the end, -EBADMSG. */
int nats_entry_take(struct str *text, struct store_entry *ret) must_check;

#endif
