/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_NATS_PROTOCOL_H
#define HUTCH_STORE_NATS_PROTOCOL_H

/*
 * The messages between hutchd and hutch-store-nats, over a stream socket (net/channel.h).
 *
 * hutchd sends requests; the reply has the same request id. Replies come in any order. Id 0 is about
 * the connection to NATS: one message without a code once requests can be carried out, and at any
 * time one with a code and the reason, which is the last.
 *
 *                   first               second                reply
 *         get       key                                       value, version
 *         put       key                 value                 version
 *         remove    key                                       -
 *         cas       key                 value                 version
 *         scan      prefix              after                 entries
 *
 * A reply with a code has the error message in `first`.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "store/store.h"

struct nats_message {
        uint64_t request_id;
        uint32_t what;    /* enum store_call; of a reply: 0, or 1 + enum err_code */
        uint64_t version; /* expected, or given */
        uint32_t limit;   /* of a scan; of its reply: whether there is more */
        struct str first, second;
};

/* Bytes besides the strings, of a message and of an entry of a scan. */
#define NATS_MESSAGE_COST 32U
#define NATS_ENTRY_COST   16U
#define NATS_MESSAGE_MAX \
        (NATS_MESSAGE_COST + STORE_SCAN_BYTES_MAX + STORE_SCAN_MAX * NATS_ENTRY_COST)

/* Appends. */
void nats_message_add(struct buf *b, const struct nats_message *m);

/* The strings are views. -EBADMSG. */
int nats_message_read(struct str bytes, struct nats_message *ret) must_check;

/* --- for hutch-store-nats, which has no loop: messages with their length before them --- */

#define NATS_FRAME_MAX (4 + NATS_MESSAGE_MAX)

void nats_frame_add(struct buf *b, const struct nats_message *m);

/* Bytes of the frame that the text begins with; 0 if it is incomplete; -EBADMSG. */
ssize_t nats_frame_read(struct str text, struct nats_message *ret) must_check;

/* --- entries of a scan --- */

void nats_entry_add(struct buf *b, struct store_entry entry);

/* Takes an entry from the front: 1, 0 at the end, -EBADMSG. */
int nats_entry_take(struct str *text, struct store_entry *ret) must_check;

#endif
