/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/shell_record.h"

#include <limits.h>

#include "base/base.h"

#define PART_MAX (PATH_MAX + 2 * ID_HEX_LEN)

void shell_record_init(struct shell_record *r)
{
        *r = (struct shell_record){ .status = -1 };
        buf_init(&r->_part, PART_MAX);
}

void shell_record_done(struct shell_record *r)
{
        buf_done(&r->_part);
        free(r->_cwd);
        *r = (struct shell_record){ .status = -1 };
}

void shell_record_begin(struct shell_record *r, const char nonce[static ID_HEX_LEN + 1])
{
        shell_record_done(r);
        shell_record_init(r);
        memcpy(r->_nonce, nonce, sizeof(r->_nonce));
}

static void take_part(struct shell_record *r, struct str s)
{
        uint64_t status;

        if (r->complete || r->_overlong || !r->_nonce[0]
            || !str_starts_with(s, str_from(r->_nonce)))
                return;
        s = str_skip(s, ID_HEX_LEN);
        if (s.n < 2 || s.p[0] != ' ')
                return;
        s = str_skip(s, 1);
        if (s.p[0] == '=') {
                r->begun = true;
        } else if (s.p[0] != '+' && s.p[0] != '-') {
                if (parse_u64_max(s, 255, &status) == 0)
                        r->status = (int) status;
        } else if (r->status >= 0) {
                struct str cwd = str_skip(s, 1);

                r->complete = true;
                r->saved = s.p[0] == '+';
                /* PWD is an ordinary variable: it may hold anything. */
                if (cwd.n > 0 && cwd.p[0] == '/' && cwd.n < PATH_MAX)
                        r->cwd = r->_cwd = xstrndup_str(cwd);
        }
}

static void add_part(struct shell_record *r, struct str bytes)
{
        r->_overlong |= bytes.n > buf_room(&r->_part);
        if (!r->_overlong)
                buf_add_str(&r->_part, bytes);
}

bool shell_record_feed(struct shell_record *r, struct str bytes)
{
        bool before = r->complete;
        ssize_t at;

        while ((at = str_find(bytes, '\0')) >= 0) {
                add_part(r, str_of(bytes.p, (size_t) at));
                take_part(r, buf_str(&r->_part));
                r->_overlong = false;
                buf_done(&r->_part);
                bytes = str_skip(bytes, (size_t) at + 1);
        }
        add_part(r, bytes);
        return r->complete && !before;
}
