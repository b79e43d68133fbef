/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_MULTIPART_H
#define HUTCH_HTTP_MULTIPART_H

/*
 * A streaming parser of multipart/form-data (RFC 7578, RFC 2046).
 *
 * The body is fed in pieces of any size, cut anywhere, and comes back as events: part, data any
 * number of times, part_end, and so on. A part may be of any size; nothing of its content is kept
 * or copied. `data` points into the fed memory, save for the few bytes at the end of a piece that
 * could have been the beginning of a boundary and were not: those come from the parser's own copy
 * of the boundary. Only a part's header is collected, up to its limit.
 *
 * Strict where a lenient reading would let two programs see different parts: lines of a header end
 * in CR LF, no folding, no control characters, a "form-data" disposition with exactly one name,
 * and nothing but blanks between a boundary and its line's end. Lenient where senders are: anything
 * before the first and (bounded) behind the last boundary is ignored, and a part without content
 * may lack the empty line's second CR LF.
 *
 * Names come as senders mean them: of a quoted string, \" and \\ are decoded as curl and RFC 9110
 * write them, %22, %0D and %0A as browsers do (HTML, 4.10.21.8), every other escape is kept as it
 * stands. "filename*" (RFC 8187, UTF-8 only) wins over "filename". A name may thus contain line
 * ends and, not validated unless it came encoded, bytes that are not UTF-8; never NUL. It was given
 * by the client: a filename is no path.
 *
 *         multipart_init(&up->mp, boundary, &upload_ops, NULL);
 *         r = multipart_feed(&up->mp, p, n);        as often as there is something
 *         r = multipart_finish(&up->mp);
 *         multipart_done(&up->mp);
 *
 * The storage is the caller's; callbacks find it with container_of. A negative errno of a callback
 * stops the parser and is returned; so is every error of its own, again with each later call.
 * A callback may not call the parser, multipart_done included.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

#define MULTIPART_BOUNDARY_MAX 70 /* RFC 2046, 5.1.1 */

struct multipart;

struct multipart_part {
        struct str name;
        struct str filename;     /* null view: not a file; empty: a file field left empty */
        struct str content_type; /* null view: not said */
};

/* The part's views are valid until its part_end returns. */
typedef int multipart_part_fn(struct multipart *mp, const struct multipart_part *part);
/* n > 0; the bytes are valid during the call. */
typedef int multipart_data_fn(struct multipart *mp, const char *p, size_t n);
typedef int multipart_part_end_fn(struct multipart *mp);

/* All are set. */
struct multipart_ops {
        multipart_part_fn *part;
        multipart_data_fn *data;
        multipart_part_end_fn *part_end;
};

/* A member that is 0 stands for its default. */
struct multipart_limits {
        size_t parts_max;        /* 10 000 */
        size_t header_bytes_max; /* of one part: 8 KiB, line ends included */
        size_t headers_max;      /* of one part: 16 */
        size_t epilogue_max;     /* bytes behind the last boundary: 64 KiB */
};

struct multipart {
        const char *reason; /* after an error of the parser's own: "part 3: header too long" */

        const struct multipart_ops *_ops;
        struct multipart_limits _limits;
        int _error;
        uint8_t _state;
        size_t _n_parts;    /* begun so far */
        size_t _n_headers;  /* of this part */
        size_t _line;       /* where the current line starts in _head */
        size_t _n_epilogue; /* bytes of it */
        size_t _match;      /* bytes of _delim that the input's end matches */
        size_t _virtual;    /* of these, the ones that were no content: see multipart.c */
        size_t _delim_n;
        char _delim[4 + MULTIPART_BOUNDARY_MAX]; /* CR LF - - boundary */
        char _reason[64];
        struct buf _head; /* the current part's header */
};

/* --- life cycle --- */

/* The boundary (1 to MULTIPART_BOUNDARY_MAX bytes, as multipart_boundary gives them) is copied,
 * the limits too; the ops stay the caller's. limits may be NULL. */
void multipart_init(struct multipart *mp, struct str boundary, const struct multipart_ops *ops,
                    const struct multipart_limits *limits);
void multipart_done(struct multipart *mp);

/* --- parsing --- */

/* 0, -EINVAL if malformed, -E2BIG over a limit, -ENOMEM, or what a callback returned. */
int multipart_feed(struct multipart *mp, const char *p, size_t n) must_check;

/* The body has ended. 0 if the closing boundary was seen, -EINVAL if not, or the earlier error. */
int multipart_finish(struct multipart *mp) must_check;

/* --- the Content-Type of the request --- */

/* The boundary parameter, a view into content_type. -ENOMSG if it is not multipart/form-data,
 * -EINVAL if it has no boundary, two, or one that RFC 2046 does not allow. */
int multipart_boundary(struct str content_type, struct str *ret) must_check;

#endif
