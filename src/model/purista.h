/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_PURISTA_H
#define HUTCH_MODEL_PURISTA_H

/*
 * PURISTA's service "Sandbox", version "1": its six commands, described once. src/api/purista serves them over HTTP,
 * src/bridge announces them on a message bus and receives them from there. Routes, payload decoding, announcements and
 * the OpenAPI document all come from this table.
 */

#include "base/buf.h"
#include "base/str.h"

#define PURISTA_SERVICE STR("Sandbox")
#define PURISTA_VERSION STR("1")

#define PURISTA_TIMEOUT_MAX_MS 1800000 /* of one executeBash */

/* X(id, name, HTTP method, HTTP path, OWNER or SANDBOX: what the command addresses, payload, result, description).
 * A macro, because route tables are constants; payload and result are names of model/purista.c. */
#define PURISTA_COMMAND_MAP(X)                                                                   \
        X(CREATE_SANDBOX, "createSandbox", POST, "/sandbox", OWNER, owner_fields, CREATE_RESULT, \
          "Creates a sandbox for its owner")                                                     \
        X(ENSURE_SANDBOX, "ensureSandbox", POST, "/sandbox/ensure", OWNER, owner_fields,         \
          ENSURE_RESULT, "Returns the owner's sandbox, which is created if there is none")       \
        X(DESTROY_SANDBOX, "destroySandbox", DELETE, "/sandbox/{sandboxId}", SANDBOX,            \
          destroy_fields, DESTROY_RESULT, "Destroys a sandbox")                                  \
        X(EXECUTE_BASH, "executeBash", POST, "/sandbox/{sandboxId}/bash", SANDBOX, bash_fields,  \
          BASH_RESULT, "Executes a bash command in a sandbox")                                   \
        X(READ_FILE, "readFile", GET, "/sandbox/{sandboxId}/file", SANDBOX, read_fields,         \
          READ_RESULT, "Reads a file of a sandbox")                                              \
        X(WRITE_FILES, "writeFiles", POST, "/sandbox/{sandboxId}/files", SANDBOX, write_fields,  \
          WRITE_RESULT, "Writes files into a sandbox")

enum purista_command_id {
#define X(id, ...) PURISTA_##id,
        PURISTA_COMMAND_MAP(X)
#undef X
                PURISTA_COMMAND_MAX_,
};

/* Everything a payload can hold. */
enum purista_member {
        PURISTA_SANDBOX_ID,
        PURISTA_PROJECT_ID,
        PURISTA_ORGANIZATION_ID,
        PURISTA_USER_ID,
        PURISTA_GIT_CONFIG,
        PURISTA_SCOPE,
        PURISTA_COMMAND,
        PURISTA_CWD,
        PURISTA_TIMEOUT_MS,
        PURISTA_PATH,
        PURISTA_FILES,
        PURISTA_MEMBER_MAX_,
};

struct purista_field {
        const char *name;
        enum purista_member member;
        bool required;
        bool in_url;        /* a gateway may send it as a path or query parameter instead */
        const char *schema; /* JSON schema of the value */
};

struct purista_command {
        struct str name; /* "executeBash" */
        const char *description;
        const char *method, *path;          /* over HTTP; the path as src/http/route.h writes it */
        const struct purista_field *fields; /* of the payload; ends in a NULL name */
        const char *output;                 /* JSON schema of the result */
};

extern const struct purista_command purista_commands[PURISTA_COMMAND_MAX_];

/* NULL if there is no command of that name. */
const struct purista_command *purista_command_find(struct str name);

/* Appends the JSON schema of the payload, without the member that the HTTP path carries if `over_http`. */
void purista_command_add_input(struct buf *b, const struct purista_command *c, bool over_http);

/* Appends the HTTP path as PURISTA's gateway writes it: "sandbox/:sandboxId/bash". */
void purista_command_add_gateway_path(struct buf *b, const struct purista_command *c);

#endif
