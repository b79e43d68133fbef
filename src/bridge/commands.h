/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_COMMANDS_H
#define HUTCH_BRIDGE_COMMANDS_H

/*
 * The six commands of PURISTA's service "Sandbox", version "1", and what is announced about each: what it
 * takes and gives, as JSON schemas, and where a gateway is to offer it over HTTP.
 */

#include "base/buf.h"
#include "bridge/names.h"

#define SERVICE_NAME    STR("Sandbox")
#define SERVICE_VERSION STR("1")

struct command_kind {
        struct str name; /* "executeBash" */
        const char *description;
        const char *method, *path;  /* of HTTP */
        const char *input, *output; /* JSON schemas */
};

#define COMMANDS_N 6
extern const struct command_kind command_kinds[COMMANDS_N];

/* NULL if there is none of that name. */
const struct command_kind *command_find(struct str name);

/* Our own address as the receiver of a command, without an instance. */
struct address command_address(const struct command_kind *kind);

/* Appends the payload of its announcement. */
void command_add_announcement(struct buf *b, const struct command_kind *kind);

#endif
