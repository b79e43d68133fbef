/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CONFIG_TABLE_IMPL_H
#define HUTCH_CONFIG_TABLE_IMPL_H

/* Shared by table.c (values, messages, the manual) and read.c (the YAML). */

#include "config/table.h"

#define CONFIG_EXPECTED_MAX 256

/* Sets one value. Returns NULL, or `expected`, which then says what is allowed: "expected a number from 1 to 5". */
const char *config__set(struct config_read *r, const struct config_key *k, void *base, struct str v,
                        char expected[static CONFIG_EXPECTED_MAX]);

/* Another element of an array, which doubles when it is full. Zeroed. NULL: the arena is full. */
void *config__grow(struct arena *memory, void *items, size_t *n, size_t size);

/* Sets the defaults of the keys whose path begins with the prefix, but not those of lists below it. False: the arena is
 * full. */
bool config__set_defaults(struct config_read *r, struct str prefix, void *base);

#endif
