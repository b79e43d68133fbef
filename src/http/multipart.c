/* SPDX-License-Identifier: Apache-2.0 */
#include "http/multipart.h"

#include <stdio.h>

#include "base/base.h"
#include "http/headers.h"
#include "http/multipart_impl.h"

/*
 * Theory of operation
 *
 * Parts are separated by the delimiter CR LF "--" boundary. A boundary contains no CR, so the only CR of
 * a delimiter is its first byte: when a match fails, no shorter match can be inside it, and the search
 * continues at the byte that failed. Each byte is examined about once.
 *
 * If a piece ends inside a candidate, only the number of matched bytes is stored (_match). If the match
 * fails in a later piece, those bytes were content; they equal the start of _delim and are delivered
 * from there.
 *
 * Two delimiters lack their CR LF: the first one, when the body begins with it, and that of a part
 * without content, whose CR LF ended the header. Both searches therefore start as if CR LF had matched;
 * these two bytes are "virtual" and never content.
 */

enum state {
        PREAMBLE,     /* before the first delimiter; dropped */
        AFTER_DELIM,  /* after a delimiter: '-' for the last, else padding and CR LF */
        CLOSING_DASH, /* one '-' seen */
        PADDING,      /* blanks between delimiter and line end */
        DELIM_LF,     /* CR seen */
        HEAD,         /* collecting a part's header */
        BODY,         /* a part's content */
        EPILOGUE,     /* after the last delimiter */
        FAILED,
};

static const struct multipart_limits default_limits = {
        .parts_max = 10000,
        .header_bytes_max = 8 * KiB,
        .headers_max = 16,
        .epilogue_max = 64 * KiB,
};

/* --- life cycle --- */

static void start_search(struct multipart *mp, enum state state)
{
        mp->_state = state;
        mp->_match = mp->_virtual = 2;
}

void multipart_init(struct multipart *mp, struct str boundary, const struct multipart_ops *ops,
                    const struct multipart_limits *limits)
{
        const struct multipart_limits *d = &default_limits;
        struct multipart_limits l = limits ? *limits : *d;

        ASSERT(boundary.n >= 1 && boundary.n <= MULTIPART_BOUNDARY_MAX);
        l.parts_max = l.parts_max ? l.parts_max : d->parts_max;
        l.header_bytes_max = l.header_bytes_max ? l.header_bytes_max : d->header_bytes_max;
        l.headers_max = l.headers_max ? l.headers_max : d->headers_max;
        l.epilogue_max = l.epilogue_max ? l.epilogue_max : d->epilogue_max;

        *mp = (struct multipart){ ._ops = ops, ._limits = l };
        buf_init(&mp->_head, l.header_bytes_max);
        memcpy(mp->_delim, "\r\n--", 4);
        memcpy(mp->_delim + 4, boundary.p, boundary.n);
        mp->_delim_n = 4 + boundary.n;
        start_search(mp, PREAMBLE);
}

void multipart_done(struct multipart *mp)
{
        buf_done(&mp->_head);
}

/* --- failure --- */

static int stop(struct multipart *mp, int error)
{
        mp->_state = FAILED;
        mp->_error = error;
        return error;
}

static int fail(struct multipart *mp, int error, const char *what)
{
        if (mp->_n_parts > 0)
                (void) snprintf(mp->_reason, sizeof(mp->_reason), "part %zu: %s", mp->_n_parts,
                                what);
        else
                (void) snprintf(mp->_reason, sizeof(mp->_reason), "%s", what);
        mp->reason = mp->_reason;
        return stop(mp, error);
}

/* --- content --- */

/* How many bytes of (p, n) equal the delimiter from its byte `from` on. */
static size_t match_length(const struct multipart *mp, size_t from, const char *p, size_t n)
{
        size_t max = MIN_OF(n, mp->_delim_n - from);
        size_t i = 0;

        while (i < max && p[i] == mp->_delim[from + i])
                i++;
        return i;
}

/* Continues a match that began in an earlier piece. Returns the bytes held back if it fails. */
static struct str resume_match(struct multipart *mp, const char *p, size_t n, size_t *ret_used)
{
        struct str held;

        *ret_used = match_length(mp, mp->_match, p, n);
        mp->_match += *ret_used;
        if (mp->_match == mp->_delim_n || *ret_used == n)
                return STR_NULL;
        held = str_of(mp->_delim + mp->_virtual, mp->_match - mp->_virtual);
        mp->_match = 0;
        return held;
}

typedef uint8_t wide __attribute__((vector_size(16)));

static wide load(const char *p)
{
        wide v;

        memcpy(&v, p, sizeof(v));
        return v;
}

/* The next position where a delimiter could start, or NULL. memchr for CR would be enough, and is used
 * for the last few bytes, but content made of CRs would slow it down sixtyfold. */
static const char *find_candidate(const char *p, const char *end)
{
        uint64_t halves[2];
        wide hits;

        /* Compares 16 positions at a time with CR LF '-', which reads 18 bytes. */
        for (; end - p >= (ptrdiff_t) sizeof(wide) + 2; p += sizeof(wide)) {
                hits = (wide) (load(p) == '\r') & (wide) (load(p + 1) == '\n')
                       & (wide) (load(p + 2) == '-');
                memcpy(halves, &hits, sizeof(halves));
                if ((halves[0] | halves[1]) == 0)
                        continue;
                while (p[0] != '\r' || p[1] != '\n' || p[2] != '-')
                        p++;
                return p;
        }
        return memchr(p, '\r', (size_t) (end - p));
}

/* Returns what precedes the delimiter, or the bytes that may be its start (_match). */
static struct str find_delim(struct multipart *mp, const char *p, size_t n, size_t *ret_used)
{
        const char *end = p + n;
        const char *at = p;

        mp->_virtual = 0;
        while ((at = find_candidate(at, end))) {
                size_t left = (size_t) (end - at);
                size_t matched = match_length(mp, 0, at, left);

                if (matched == left || matched == mp->_delim_n) {
                        *ret_used = (size_t) (at - p) + matched;
                        mp->_match = matched;
                        return str_of(p, (size_t) (at - p));
                }
                at += matched;
        }
        *ret_used = n;
        return str_of(p, n);
}

static int search(struct multipart *mp, const char *p, size_t n, size_t *ret_used)
{
        bool in_part = mp->_state == BODY;
        struct str content = mp->_match > 0 ? resume_match(mp, p, n, ret_used)
                                            : find_delim(mp, p, n, ret_used);
        int r = 0;

        if (in_part && content.n > 0)
                r = mp->_ops->data(mp, content.p, content.n);
        if (r == 0 && mp->_match == mp->_delim_n) {
                mp->_state = AFTER_DELIM;
                mp->_match = mp->_virtual = 0;
                if (in_part)
                        r = mp->_ops->part_end(mp);
        }
        return r < 0 ? stop(mp, r) : 0;
}

/* --- the end of a delimiter's line, byte by byte --- */

static int after_delim(struct multipart *mp, const char *p, size_t n, size_t *ret_used)
{
        bool dashes = mp->_state == CLOSING_DASH;

        *ret_used = 1;
        if (mp->_state == DELIM_LF) {
                if (*p != '\n')
                        return fail(mp, -EINVAL, "carriage return without line feed");
                if (mp->_n_parts == mp->_limits.parts_max)
                        return fail(mp, -E2BIG, "too many parts");
                mp->_n_parts++;
                mp->_n_headers = 0;
                mp->_line = 0;
                buf_reset(&mp->_head);
                mp->_state = HEAD;
        } else if (*p == '-' && dashes) {
                mp->_state = EPILOGUE;
        } else if (*p == '-' && mp->_state == AFTER_DELIM) {
                mp->_state = CLOSING_DASH;
        } else if (*p == '\r' && !dashes) {
                mp->_state = DELIM_LF;
        } else if ((*p == ' ' || *p == '\t') && !dashes) {
                mp->_state = PADDING;
        } else {
                return fail(mp, -EINVAL, "boundary followed by other text");
        }
        return 0;
}

/* --- a part's header --- */

static int head(struct multipart *mp, const char *p, size_t n, size_t *ret_used)
{
        struct buf *b = &mp->_head;
        size_t room = buf_room(b);
        const char *lf = memchr(p, '\n', MIN_OF(n, room));
        size_t take = lf ? (size_t) (lf - p) + 1 : n;
        struct multipart_part part;
        const char *wrong;
        struct str line;
        int r;

        if (take > room)
                return fail(mp, -E2BIG, "header too long");
        buf_add(b, p, take);
        if (buf_failed(b))
                return fail(mp, -ENOMEM, "out of memory");
        *ret_used = take;
        if (!lf)
                return 0;
        line = str_skip(buf_str(b), mp->_line);
        if (line.n < 2 || line.p[line.n - 2] != '\r')
                return fail(mp, -EINVAL, "line feed without carriage return");
        if (line.n > 2) {
                if (++mp->_n_headers > mp->_limits.headers_max)
                        return fail(mp, -E2BIG, "too many headers");
                wrong = multipart__check_line(str_of(line.p, line.n - 2));
                mp->_line = b->n;
                return wrong ? fail(mp, -EINVAL, wrong) : 0;
        }
        /* The header is complete; it is parsed without the empty line. */
        wrong = multipart__parse_head(b->p + b->start, mp->_line, &part);
        if (wrong)
                return fail(mp, -EINVAL, wrong);
        start_search(mp, BODY);
        r = mp->_ops->part(mp, &part);
        return r < 0 ? stop(mp, r) : 0;
}

/* --- after the last delimiter --- */

static int epilogue(struct multipart *mp, const char *p, size_t n, size_t *ret_used)
{
        if (n > mp->_limits.epilogue_max - mp->_n_epilogue)
                return fail(mp, -E2BIG, "too much text after the last part");
        mp->_n_epilogue += n;
        *ret_used = n;
        return 0;
}

/* --- parsing --- */

/* Each consumes some of (p, n), n > 0, from its start. If it consumes nothing, it changes the state or
 * _match. */
typedef int state_fn(struct multipart *mp, const char *p, size_t n, size_t *ret_used);

static state_fn *const state_fns[] = {
        [PREAMBLE] = search,     [AFTER_DELIM] = after_delim, [CLOSING_DASH] = after_delim,
        [PADDING] = after_delim, [DELIM_LF] = after_delim,    [HEAD] = head,
        [BODY] = search,         [EPILOGUE] = epilogue,
};
static_assert(ARRAY_SIZE(state_fns) == FAILED, "state_fns[] out of step");

int multipart_feed(struct multipart *mp, const char *p, size_t n)
{
        while (n > 0 && mp->_state != FAILED) {
                size_t used = 0;
                int r = state_fns[mp->_state](mp, p, n, &used);

                if (r < 0)
                        return r;
                p += used;
                n -= used;
        }
        return mp->_state == FAILED ? mp->_error : 0;
}

int multipart_finish(struct multipart *mp)
{
        if (mp->_state == FAILED)
                return mp->_error;
        return mp->_state == EPILOGUE ? 0 : fail(mp, -EINVAL, "closing boundary missing");
}

/* --- the Content-Type of the request --- */

static bool boundary_is_valid(struct str s)
{
        static const char others[] = "'()+_,-./:=? ";

        if (s.n < 1 || s.n > MULTIPART_BOUNDARY_MAX || s.p[s.n - 1] == ' ')
                return false;
        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];
                bool alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');

                if (!alnum && !memchr(others, c, sizeof(others) - 1))
                        return false;
        }
        return true;
}

int multipart_boundary(struct str content_type, struct str *ret)
{
        struct str rest = content_type, type, boundary = STR_NULL;
        struct field_param param;
        int r;

        field_param_value(&rest, &type);
        if (!str_caseeq(type, STR("multipart/form-data")))
                return -ENOMSG;
        while ((r = field_param_next(&rest, &param)) > 0) {
                if (!str_caseeq(param.name, STR("boundary")))
                        continue;
                if (boundary.p)
                        return -EINVAL;
                boundary = param.value;
        }
        if (r < 0 || !boundary.p || !boundary_is_valid(boundary))
                return -EINVAL;
        *ret = boundary;
        return 0;
}
