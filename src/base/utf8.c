/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

#include "base/banned.h"

/* Only the first continuation byte has a range narrower than 80..BF: it excludes overlong forms
 * (E0, F0), surrogates (ED) and code points beyond U+10FFFF (F4). */
static bool take_byte(struct utf8_check *c, uint8_t b)
{
        if (c->_need > 0 && (b < c->_lo || b > c->_hi))
                return false;
        c->_lo = 0x80;
        c->_hi = 0xbf;
        if (c->_need > 0) {
                c->_need--;
        } else if (b >= 0xc2 && b <= 0xdf) {
                c->_need = 1;
        } else if (b >= 0xe0 && b <= 0xef) {
                c->_need = 2;
                if (b == 0xe0)
                        c->_lo = 0xa0;
                else if (b == 0xed)
                        c->_hi = 0x9f;
        } else if (b >= 0xf0 && b <= 0xf4) {
                c->_need = 3;
                if (b == 0xf0)
                        c->_lo = 0x90;
                else if (b == 0xf4)
                        c->_hi = 0x8f;
        } else {
                return false;
        }
        return true;
}

static size_t skip_ascii(const uint8_t *p, size_t n)
{
        size_t i = 0;

        for (; n - i >= 8; i += 8) {
                uint64_t v;

                memcpy(&v, p + i, sizeof(v));
                if (v & 0x8080808080808080U)
                        break;
        }
        while (i < n && p[i] < 0x80)
                i++;
        return i;
}

void utf8_check_init(struct utf8_check *c)
{
        *c = (struct utf8_check){ 0 };
}

int utf8_check_feed(struct utf8_check *c, const void *p, size_t n, size_t *reterr_at)
{
        const uint8_t *b = p;

        for (size_t i = 0; i < n; i++) {
                if (c->_need == 0) {
                        i += skip_ascii(b + i, n - i);
                        if (i == n)
                                break;
                }
                if (!take_byte(c, b[i])) {
                        *reterr_at = i;
                        return -EILSEQ;
                }
        }
        return 0;
}

int utf8_check_finish(const struct utf8_check *c)
{
        return c->_need == 0 ? 0 : -EILSEQ;
}
