/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_CONFIG_WHERE_H
#define HUTCH_HUTCHD_CONFIG_WHERE_H

/*
 * Where in a YAML text a thing is: libyaml's nodes, kept only to tell lines.
 *
 * Opening also checks the form, because libcyaml takes more than it should and says less than it
 * could: one document at most, keys are plain texts, no value has a NUL in it or is very long.
 *
 * Nodes hold copies of secrets; they are wiped at the end.
 */

#include <yaml.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define CONFIG_VALUE_MAX 4096

struct config_where {
        yaml_document_t _document;
};

/* ERR_INVALID: "NAME:LINE: what". */
int config_where_open(struct config_where *w, struct str text, const char *name, struct err *e)
        must_check;
void config_where_close(struct config_where *w);

bool config_where_empty(struct config_where *w);

/* The line of a value, or of a key for which there is none: path "keys[1]", key "role". If that is
 * not there, the line of what contains it. `key` may be the null view. */
unsigned config_where_line(struct config_where *w, struct str path, struct str key);

#endif
