/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_ENUM_H
#define HUTCH_BASE_ENUM_H

/*
 * Enums and their names. An enum ends in X_MAX_, has X_INVALID = -EINVAL, and owns one table:
 *
 *         enum state { STATE_PENDING, STATE_RUNNING, STATE_MAX_, STATE_INVALID = -EINVAL };
 *
 *         static const char *const state_names[] = {
 *                 [STATE_PENDING] = "Pending",
 *                 [STATE_RUNNING] = "Running",
 *         };
 *         ENUM_TABLE(state, state_names, STATE_MAX_);
 *
 * which defines state_to_string and state_from_string; the latter returns -EINVAL for a text that is
 * not in the table. ENUM_DECLARE(state) declares both in the header.
 */

#include "base/compiler.h"
#include "base/str.h"

struct enum_table {
        const char *const *names;
        int n;
};

/* NULL if v is out of range or has no name. */
static inline const char *enum_to_string(const struct enum_table *t, int v)
{
        return v >= 0 && v < t->n ? t->names[v] : NULL;
}

/* -EINVAL if no name equals s. */
static inline int enum_from_string(const struct enum_table *t, struct str s)
{
        for (int i = 0; i < t->n; i++)
                if (t->names[i] && str_eq(str_from(t->names[i]), s))
                        return i;
        return -EINVAL;
}

#define ENUM_DECLARE(name)                    \
        const char *name##_to_string(int v);  \
        int name##_from_string(struct str s); \
        extern const struct enum_table name##_table

#define ENUM_TABLE(name, strings, max)                                        \
        static_assert(ARRAY_SIZE(strings) == (max), #strings " out of step"); \
        const struct enum_table name##_table = { (strings), (max) };          \
        const char *name##_to_string(int v)                                   \
        {                                                                     \
                return enum_to_string(&name##_table, v);                      \
        }                                                                     \
        int name##_from_string(struct str s)                                  \
        {                                                                     \
                return enum_from_string(&name##_table, s);                    \
        }                                                                     \
        static_assert(true, "")

#endif
