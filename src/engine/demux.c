/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "engine/relay.h"

enum { STDIN, STDOUT, STDERR };

bool demux_next(struct demux *d, struct str *bytes, struct str *ret, int *ret_error)
{
        size_t n;

        *ret_error = 0;
        *ret = STR("");
        if (bytes->n == 0)
                return false;
        if (d->left == 0) {
                n = MIN_OF(sizeof(d->head) - d->n, bytes->n);
                memcpy(d->head + d->n, bytes->p, n);
                *bytes = str_skip(*bytes, n);
                d->n += n;
                if (d->n < sizeof(d->head))
                        return false;
                d->n = 0;
                d->left = (uint32_t) d->head[4] << 24 | (uint32_t) d->head[5] << 16
                          | (uint32_t) d->head[6] << 8 | d->head[7];
                if (d->head[0] > STDERR || d->head[1] || d->head[2] || d->head[3])
                        *ret_error = -EBADMSG;
                return *ret_error == 0;
        }
        n = MIN_OF((size_t) d->left, bytes->n);
        if (d->head[0] == STDOUT)
                *ret = str_of(bytes->p, n);
        *bytes = str_skip(*bytes, n);
        d->left -= (uint32_t) n;
        return true;
}
