/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_WS_COLLECTOR_H
#define HUTCH_TESTS_LIB_WS_COLLECTOR_H

/* Collects the pieces of WebSocket messages, for servers of tests that want complete ones. */

#include "base/buf.h"
#include "http/ws.h"

/* Call this with each piece; `b` holds what came before. 1: *ret_message is complete and valid until
 * the next call. 0: more to come. -ENOBUFS: too large. */
static inline int ws_collect(struct buf *b, unsigned flags, const char *p, size_t n,
                             struct str *ret_message)
{
        if (flags & WS_FIRST)
                buf_reset(b);
        buf_add(b, p, n);
        if (buf_failed(b))
                return -ENOBUFS;
        *ret_message = buf_str(b);
        return flags & WS_LAST ? 1 : 0;
}

#endif
