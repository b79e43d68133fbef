/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_CONFIG_RULES_H
#define HUTCH_HUTCHD_CONFIG_RULES_H

/* What the texts of a configuration file mean: struct config_raw to struct config, by tables. */

#include "hutchd/config.h"
#include "hutchd/config_schema.h"

struct config_rules {
        const struct config_raw *raw;
        struct config_where *where;
        const char *name; /* of the file, for errors */
        struct config *to;
};

int config_rules_apply(const struct config_rules *c, struct err *e) must_check;

/* Whether a text is an API key that one would want, and the digest and id of it. `id` has room for
 * CONFIG_KEY_ID_LEN characters and a NUL. Returns what is expected, or NULL. */
#define CONFIG_KEY_ID_LEN 10
const char *config_key_set(struct api_key *k, struct str text, char *id);

#endif
