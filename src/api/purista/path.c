/* SPDX-License-Identifier: Apache-2.0 */
#include "api/purista/path.h"

#include "base/base.h"
#include "http/url.h"

int purista_agent_path(struct arena *a, struct str path, struct str *ret)
{
        bool variable = path.p && str_find(path, '$') >= 0;
        bool special = str_starts_with(path, STR("~")) || str_starts_with(path, STR("file:"));
        scoped(buf_done) struct buf b;

        buf_init(&b, 3 * path.n + 64);
        *ret = path;
        if (!variable && !special)
                return 0;
        if (!variable) {
                buf_add_str(&b, STR("./"));
                buf_add_str(&b, path);
        } else {
                buf_add_str(&b, STR("file://"));
                if (!str_starts_with(path, STR("/")))
                        buf_add_str(&b, STR(PURISTA_WORKSPACE "/"));
                url_encode_path(&b, path);
        }
        *ret = buf_failed(&b) ? STR_NULL : arena_dup_str(a, buf_str(&b));
        return ret->p ? 0 : -ENOMEM;
}

const char *purista_printable(struct str text, char ret[static TEXT_CUT])
{
        struct str cut = str_utf8_cut(text, TEXT_CUT - 1);

        for (size_t i = 0; i < cut.n; i++) {
                bool control = (unsigned char) cut.p[i] < ' ' || cut.p[i] == 0x7f;

                ret[i] = '?';
                if (!control)
                        ret[i] = cut.p[i];
        }
        ret[cut.n] = '\0';
        return ret;
}
