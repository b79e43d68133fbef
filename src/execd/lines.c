/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/lines.h"

#include "base/base.h"

void lines_init(struct lines *l, size_t max)
{
        ASSERT(max >= LINES_MIN);
        *l = (struct lines){ 0 };
        buf_init(&l->_partial, max);
}

void lines_done(struct lines *l)
{
        buf_done(&l->_partial);
}

/* Bytes before the first line end, or all. */
static size_t find_end(struct str s)
{
        const char *lf = memchr(s.p, '\n', s.n);
        size_t n = lf ? (size_t) (lf - s.p) : s.n;
        const char *cr = memchr(s.p, '\r', n);

        return cr ? (size_t) (cr - s.p) : n;
}

/* How many of the first n bytes can be returned without cutting a character: all, less a well-formed beginning
 * of one at the end. */
static size_t cut_between_characters(const char *p, size_t n)
{
        for (size_t back = 1; back <= 3 && back < n; back++) {
                unsigned char c = (unsigned char) p[n - back];
                size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;

                if ((c & 0xc0) == 0x80)
                        continue;
                return c >= 0xc2 && c <= 0xf4 && back < length ? n - back : n;
        }
        return n;
}

/* Returns the first n bytes of the partial line. */
static struct str return_partial(struct lines *l, size_t n)
{
        l->_given = n;
        return str_of(buf_str(&l->_partial).p, n);
}

static void drop_given(struct lines *l)
{
        buf_consume(&l->_partial, l->_given);
        l->_given = 0;
        buf_release(&l->_partial);
}

static void skip_end(struct lines *l, struct str *input)
{
        l->_after_cr = input->p[0] == '\r';
        *input = str_skip(*input, 1);
}

bool lines_next(struct lines *l, struct str *input, struct str *ret)
{
        size_t n;

        drop_given(l);
        if (l->_after_cr && input->n > 0) {
                l->_after_cr = false;
                if (input->p[0] == '\n')
                        *input = str_skip(*input, 1);
        }
        if (input->n == 0)
                return false;
        n = find_end(*input);
        if (l->_partial.n == 0 && n < input->n && n <= l->_partial.max) {
                *ret = str_of(input->p, n);
                *input = str_skip(*input, n);
                skip_end(l, input);
                return true;
        }
        n = MIN_OF(n, buf_room(&l->_partial));
        buf_add(&l->_partial, input->p, n);
        *input = str_skip(*input, n);
        /* Also when it is full: whether the line ends here or continues decides where it is cut. */
        if (input->n == 0)
                return false;
        if (find_end(*input) == 0) {
                *ret = return_partial(l, l->_partial.n);
                skip_end(l, input);
        } else {
                *ret = return_partial(l, cut_between_characters(buf_str(&l->_partial).p,
                                                                l->_partial.n));
        }
        return true;
}

bool lines_remainder(struct lines *l, struct str *ret)
{
        drop_given(l);
        if (l->_partial.n == 0)
                return false;
        *ret = return_partial(l, l->_partial.n);
        return true;
}
