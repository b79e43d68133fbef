/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "hutchd/drivers.h"
#include "model/text.h"

const struct hutchd_driver *drivers_find(const char *name)
{
        for (const struct hutchd_driver *k = hutchd_drivers; k->name; k++)
                if (strcmp(k->name, name) == 0)
                        return k;
        return NULL;
}

int drivers_check(const char *name, struct err *e)
{
        char text[256];
        struct buf b;

        if (drivers_find(name))
                return 0;
        buf_init_fixed(&b, text, sizeof(text));
        for (const struct hutchd_driver *k = hutchd_drivers; k->name; k++)
                buf_addf(&b, "%s%s (%s)", k == hutchd_drivers ? "" : ", ", k->name, k->help);
        return err_set(e, ERR_NOT_FOUND, "no driver is called %s; there are: %.*s",
                       QUOTED(str_from(name)), STR_ARG(buf_str(&b)));
}
