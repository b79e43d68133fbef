/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_CONFIG_RULES_IMPL_H
#define HUTCH_HUTCHD_CONFIG_RULES_IMPL_H

/* What the rules share: config_rules.c has those of single values and lists, config_rules_who.c those
 * of keys and quotas, config_rules_engines.c those of container engines, config_rules_purista.c those of
 * PURISTA's sandboxes, config_rules_store.c those of the store, config_rules_cluster.c those of other nodes. */

#include "hutchd/config_rules.h"

#define RULES_NO_ROOM "expected a smaller configuration"

/* They take a value, or return what is expected instead. */
const char *rules__set_text(struct config *c, struct str value, struct str *ret);
const char *rules__set_path(struct config *c, struct str value, const char **ret);
const char *rules__set_time(struct str value, usec_t max, usec_t *ret);
const char *rules__set_number(struct str value, uint64_t max, uint64_t *ret);

/* The error about the value at a path; a null view is a value that is not shown. */
int rules__wrong(const struct config_rules *r, const char *path, struct str value,
                 const char *expected, struct err *e);

/* The path of a member of a list's entry, "keys[3].role", or of the entry itself. RULES_ENTRY lives as
 * long as its block. */
#define RULES_PATH_MAX 80
const char *rules__entry(char ret[static RULES_PATH_MAX], const char *list, uint64_t i,
                         const char *member);
#define RULES_ENTRY(list, i, member) rules__entry((char[RULES_PATH_MAX]){ 0 }, list, i, member)

int rules__apply_keys(const struct config_rules *r, struct err *e) must_check;
int rules__apply_quotas(const struct config_rules *r, struct err *e) must_check;
int rules__apply_cluster(const struct config_rules *r, struct err *e) must_check;
int rules__apply_store(const struct config_rules *r, struct err *e) must_check;
int rules__apply_engines(const struct config_rules *r, struct err *e) must_check;
int rules__apply_purista(const struct config_rules *r, struct err *e) must_check;

#endif
