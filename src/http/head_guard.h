/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_HEAD_GUARD_H
#define HUTCH_HTTP_HEAD_GUARD_H

/*
 * Checks the bytes of a message head before llhttp sees them.
 *
 * Request smuggling exploits heads that two parsers read differently. llhttp 8.1 accepts some of them
 * even in strict mode: a bare LF after the request line or as the line that ends the head, continuation
 * lines (obs-fold), an empty field name. The guard rejects these and a few more, by rules that need no
 * knowledge of HTTP beyond "a head is made of lines":
 *
 *   - a line ends in CR LF; neither occurs alone;
 *   - no control characters except HTAB;
 *   - no line but the first begins with SP, HTAB (obs-fold) or ':' (empty name);
 *   - at most HEAD_GUARD_BLANK_MAX empty lines come before the request line (RFC 9112, 2.2);
 *   - not more bytes than the maximum, skipped lines included.
 *
 * It also finds the end of the head, so that its user can feed llhttp exactly the head. In trailer mode
 * there is no first line: the guard starts after the last chunk ("0" CR LF), and an empty line ends the
 * trailer.
 *
 * The guard stores no bytes. Input may be split anywhere. An error persists until the next init. The
 * caller owns the storage; there is nothing to free.
 */

#include "base/compiler.h"

#define HEAD_GUARD_BLANK_MAX 2

enum head_guard_mode { HEAD_GUARD_MESSAGE, HEAD_GUARD_TRAILER };

struct head_guard {
        const char *reason; /* after an error: static text */
        size_t _left;       /* bytes that may still come */
        int _error;
        uint8_t _state;
        uint8_t _blanks; /* empty lines skipped so far */
};

void head_guard_init(struct head_guard *g, enum head_guard_mode mode, size_t max);

/* 0: all n bytes are valid, more are needed; *ret_consumed is n. 1: the head is complete;
 * *ret_consumed of these bytes belong to it, including its empty line. -EBADMSG: malformed, -E2BIG: over
 * the maximum. Once complete, further calls return 1 and consume nothing. */
int head_guard_feed(struct head_guard *g, const char *p, size_t n, size_t *ret_consumed) must_check;

#endif
