/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/permission.h"

#include "base/base.h"
#include "execd/problem.h"

static int mode_from_digits(int64_t digits, mode_t *ret, struct err *e)
{
        mode_t mode = 0;
        int64_t left = digits;

        *ret = FILE_MODE_KEEP;
        if (digits == 0)
                return 0;
        for (unsigned shift = 0; left > 0; shift += 3, left /= 10) {
                if (left % 10 > 7 || shift > 9)
                        return err_set(e, ERR_INVALID,
                                       "mode must be octal digits as 644 or 0, at most 7777");
                mode |= (mode_t) (left % 10) << shift;
        }
        if (digits < 0)
                return err_set(e, ERR_INVALID, "mode must not be negative");
        *ret = mode;
        return 0;
}

typedef int from_text_fn(const struct users *u, struct str text, uint32_t *ret);

static int id_from_text(from_text_fn *from_text, const struct users *u, struct str text,
                        uint32_t *ret)
{
        *ret = FILE_ID_KEEP;
        return text.n == 0 ? 0 : from_text(u, text, ret);
}

int permission_resolve(const struct permission *p, const struct users *u, struct file_attrs *ret,
                       struct err *e)
{
        struct file_attrs attrs;
        int r = mode_from_digits(p->mode, &attrs.mode, e);

        if (r < 0)
                return r;
        if (id_from_text(users_uid_from_text, u, p->owner, &attrs.uid) < 0)
                return err_set(e, ERR_NOT_FOUND, "there is no user '%.*s'", PROBLEM_PATH(p->owner));
        if (id_from_text(users_gid_from_text, u, p->group, &attrs.gid) < 0)
                return err_set(e, ERR_NOT_FOUND, "there is no group '%.*s'",
                               PROBLEM_PATH(p->group));
        *ret = attrs;
        return 0;
}
