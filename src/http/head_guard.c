/* SPDX-License-Identifier: Apache-2.0 */
#include "http/head_guard.h"

#include <endian.h>
#include <string.h>

#include "base/base.h"

/*
 * The inside of a line is scanned eight bytes at a time up to the next control character: one pass does
 * what memchr and a check would do in two. Everything else is one step per byte, about three per line.
 */

enum state {
        BEFORE,     /* message mode: before the request line */
        BEFORE_LF,  /* after the CR of an empty line */
        LINE_START, /* first byte of a field line, or CR of the empty line */
        IN_LINE,
        LINE_LF, /* after the CR of a line */
        LAST_LF, /* after the CR of the empty line that ends the head */
        COMPLETE,
        FAILED,
};

#define EACH(byte) (0x0101010101010101U * (byte))

void head_guard_init(struct head_guard *g, enum head_guard_mode mode, size_t max)
{
        *g = (struct head_guard){
                ._left = max,
                ._state = mode == HEAD_GUARD_TRAILER ? LINE_START : BEFORE,
        };
}

static bool is_control(char c)
{
        return ((unsigned char) c < 0x20 && c != '\t') || c == 0x7f;
}

/* The first control character except HTAB, or end. Of the bits that are set in `hits`, the lowest is
 * exact; those above may come from a borrow. */
static const char *find_control(const char *p, const char *end)
{
        while (end - p >= 8) {
                uint64_t v, del, hits;

                memcpy(&v, p, sizeof(v));
                v = le64toh(v);
                del = v ^ EACH(0x7f);
                hits = (((v - EACH(0x20)) & ~v) | ((del - EACH(0x01)) & ~del)) & EACH(0x80);
                if (hits == 0) {
                        p += 8;
                        continue;
                }
                p += __builtin_ctzll(hits) / 8;
                if (*p != '\t')
                        return p;
                p++;
        }
        while (p < end && !is_control(*p))
                p++;
        return p;
}

static int fail(struct head_guard *g, int error, const char *reason)
{
        g->_state = FAILED;
        g->_error = error;
        g->reason = reason;
        return error;
}

static int bad_control(struct head_guard *g, char c)
{
        return fail(g, -EBADMSG,
                    c == '\n' ? "line feed without carriage return"
                              : "control character in the message head");
}

/* One byte outside the inside of a line: its first one, or the LF after a CR. 1: the head is complete. */
static int step(struct head_guard *g, char c)
{
        bool field = g->_state == LINE_START;

        if (field || g->_state == BEFORE) {
                if (c == '\r') {
                        g->_state = field ? LAST_LF : BEFORE_LF;
                        return 0;
                }
                if (is_control(c))
                        return bad_control(g, c);
                if (field && (c == ' ' || c == '\t'))
                        return fail(g, -EBADMSG, "folded header line");
                if (field && c == ':')
                        return fail(g, -EBADMSG, "empty header name");
                g->_state = IN_LINE;
                return 0;
        }
        if (c != '\n')
                return fail(g, -EBADMSG, "carriage return without line feed");
        if (g->_state == LAST_LF) {
                g->_state = COMPLETE;
                return 1;
        }
        if (g->_state == BEFORE_LF && ++g->_blanks > HEAD_GUARD_BLANK_MAX)
                return fail(g, -EBADMSG, "too many empty lines before the request");
        g->_state = g->_state == BEFORE_LF ? BEFORE : LINE_START;
        return 0;
}

int head_guard_feed(struct head_guard *g, const char *p, size_t n, size_t *ret_consumed)
{
        const char *at = p, *end;
        int r = 0;

        if (g->_state == FAILED)
                return g->_error;
        if (g->_state == COMPLETE || n == 0) {
                *ret_consumed = 0;
                return g->_state == COMPLETE;
        }
        end = p + MIN_OF(n, g->_left);
        while (at < end && r == 0) {
                if (g->_state != IN_LINE) {
                        r = step(g, *at++);
                        continue;
                }
                at = find_control(at, end);
                if (at == end)
                        break;
                if (*at != '\r')
                        return bad_control(g, *at);
                g->_state = LINE_LF;
                at++;
        }
        if (r < 0)
                return r;
        g->_left -= (size_t) (at - p);
        if (r == 0 && (size_t) (at - p) < n)
                return fail(g, -E2BIG, "message head too large");
        *ret_consumed = (size_t) (at - p);
        return r;
}
