/* SPDX-License-Identifier: Apache-2.0 */
#include "base/enum.h"

#include "base/banned.h"

const char *enum_to_string(const struct enum_table *t, int v)
{
        return v >= 0 && v < t->n ? t->names[v] : NULL;
}

int enum_from_string(const struct enum_table *t, struct str s)
{
        for (int i = 0; i < t->n; i++)
                if (t->names[i] && str_eq(str_from(t->names[i]), s))
                        return i;
        return -EINVAL;
}
