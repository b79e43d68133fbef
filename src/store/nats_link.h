/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_NATS_LINK_H
#define HUTCH_STORE_NATS_LINK_H

/*
 * The process hutch-store-nats and the socket to it.
 *
 *         down ── timer ── starting ── ready
 *          └───── closing ◄────┴─────────┘
 *
 * Starting ends when the process says that it is connected and the bucket is fit. After any error the process is killed, and
 * started again after a time that doubles from NATS_BACKOFF_MIN to NATS_BACKOFF_MAX. The next one is started when the last
 * one is gone: what it was about to write is then written, or never.
 */

#include <sys/types.h>

#include "base/log.h"
#include "net/stream.h"
#include "store/nats_protocol.h"

#define NATS_BACKOFF_MIN (50 * USEC_PER_MSEC)
#define NATS_BACKOFF_MAX (2 * USEC_PER_SEC)
#define NATS_OUT_MAX     (16 * MiB)

enum nats_state {
        NATS_DOWN,
        NATS_STARTING,
        NATS_READY,
        NATS_CLOSING,
};

struct nats_link {
        /* --- the owner's --- */
        struct net_loop *loop;
        char **argv;
        const char *where;
        const struct log_ctx *log;
        usec_t patience;                    /* for starting */
        void (*ready)(struct nats_link *l); /* or has room again */
        void (*answer)(struct nats_link *l,
                       struct nats_frame f); /* ends all by nats_link_drop if it is nonsense */
        void (*lost)(struct nats_link *l);   /* there will be no answers any more */
        void (*ended)(struct nats_link *l);

        enum nats_state state;
        struct err failure; /* why it is not ready */

        struct net_stream _stream;
        struct buf _in;
        uv_timer_t _timer; /* down: to try again; starting: how long that may take */
        uv_poll_t _exit;
        pid_t _pid;
        int _pidfd;
        unsigned _open;  /* stream and process */
        unsigned _tries; /* that failed, since it was ready */
        bool _ending;
};

/* The first attempt begins at once. */
void nats_link_open(struct nats_link *l);

/* Leads to `ended`, from the loop. */
void nats_link_end(struct nats_link *l);

/* Kills the process, calls `lost`, and tries again later. */
void nats_link_drop(struct nats_link *l, const char *why);

/* Ready, and room for a frame with that many bytes in it. */
bool nats_link_has_room(const struct nats_link *l, size_t bytes);

void nats_link_send(struct nats_link *l, struct nats_frame f);

#endif
