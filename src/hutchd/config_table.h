/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_CONFIG_TABLE_H
#define HUTCH_HUTCHD_CONFIG_TABLE_H

/* The keys of hutchd.yaml(5). The target is a struct config. */

#include "config/table.h"
#include "hutchd/config.h"

extern const struct config_table hutchd_config_table;

/* Checks an API key and sets its digest and id, the latter in a buffer of CONFIG_KEY_ID_LEN characters and a
 * NUL. Returns what is expected instead, or NULL. */
#define CONFIG_KEY_ID_LEN 10
const char *config_key_set(struct api_key *k, struct str text, char *id);

#endif
