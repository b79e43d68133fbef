/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_MULTIPART_H
#define HUTCH_HTTP_MULTIPART_H

/*
 * A streaming parser of multipart/form-data (RFC 7578, RFC 2046).
 *
 * The body is fed in pieces of any size and produces events: part, data any number of times, part_end,
 * and so on. A part may have any size; its content is neither stored nor copied. `data` points into the
 * fed memory, except for the few bytes at the end of a piece that could have been the start of a
 * boundary: these come from the parser's copy of the boundary. Only the header of a part is collected,
 * up to its limit.
 *
 * The parser is strict where a lenient reading would let two programs see different parts: header lines
 * end in CR LF, no folding, no control characters, a "form-data" disposition with exactly one name, and
 * only blanks between a boundary and the end of its line. It is lenient where senders are: it ignores
 * anything before the first and (bounded) after the last boundary, and a part without content may lack
 * the second CR LF of the empty line.
 *
 * Names are decoded: in a quoted string \" and \\ as curl and RFC 9110 write them, %22, %0D and %0A as
 * browsers do (HTML, 4.10.21.8); other escapes are kept. "filename*" (RFC 8187, UTF-8 only) wins over
 * "filename". A name may therefore contain line ends and bytes that are not UTF-8; never NUL. It comes
 * from the client: a filename is not a path.
 *
 *         multipart_init(&up->mp, boundary, &upload_ops, NULL);
 *         r = multipart_feed(&up->mp, p, n);        as often as there is something
 *         r = multipart_finish(&up->mp);
 *         multipart_done(&up->mp);
 *
 * The caller owns the storage; callbacks find it with container_of. A negative errno of a callback stops
 * the parser and is returned, as is every error of the parser, again by each later call. A callback must
 * not call the parser, including multipart_done.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

#define MULTIPART_BOUNDARY_MAX 70 /* RFC 2046, 5.1.1 */

struct multipart;

struct multipart_part {
        struct str name;
        struct str filename;     /* null view: not a file; empty: an empty file field */
        struct str content_type; /* null view: absent */
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

/* 0 selects the default. */
struct multipart_limits {
        size_t parts_max;        /* 10 000 */
        size_t header_bytes_max; /* of one part, including line ends: 8 KiB */
        size_t headers_max;      /* of one part: 16 */
        size_t epilogue_max;     /* bytes after the last boundary: 64 KiB */
};

struct multipart {
        const char *reason; /* after an error of the parser: "part 3: header too long" */

        const struct multipart_ops *_ops;
        struct multipart_limits _limits;
        int _error;
        uint8_t _state;
        size_t _n_parts;    /* so far */
        size_t _n_headers;  /* of this part */
        size_t _line;       /* start of the current line in _head */
        size_t _n_epilogue; /* bytes after the last boundary */
        size_t _match;      /* bytes of _delim that the end of the input matches */
        size_t _virtual;    /* of these, bytes that are not content; see multipart.c */
        size_t _delim_n;
        char _delim[4 + MULTIPART_BOUNDARY_MAX]; /* CR LF - - boundary */
        char _reason[64];
        struct buf _head; /* header of the current part */
};

/* --- life cycle --- */

/* Copies the boundary (1 to MULTIPART_BOUNDARY_MAX bytes, from multipart_boundary) and the limits;
 * `ops` must stay valid. limits may be NULL. */
void multipart_init(struct multipart *mp, struct str boundary, const struct multipart_ops *ops,
                    const struct multipart_limits *limits);
void multipart_done(struct multipart *mp);

/* --- parsing --- */

/* 0, -EINVAL if malformed, -E2BIG over a limit, -ENOMEM, or what a callback returned. */
int multipart_feed(struct multipart *mp, const char *p, size_t n) must_check;

/* The body has ended: 0 if the closing boundary was seen, else -EINVAL, or the earlier error. */
int multipart_finish(struct multipart *mp) must_check;

/* --- the Content-Type of the request --- */

/* The boundary parameter, a view into content_type. -ENOMSG if it is not multipart/form-data,
 * -EINVAL if it has no boundary, two, or one that RFC 2046 does not allow. */
int multipart_boundary(struct str content_type, struct str *ret) must_check;

#endif
