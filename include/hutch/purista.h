/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PURISTA_H
#define HUTCH_PURISTA_H

/* The commands of PURISTA's sandbox service. Include <hutch/hutch.h>, which has the general rules. */

#include <hutch/agent.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Five of PURISTA's six commands; the sixth, createSandbox, is hutch_create_sandbox with an owner.
 *
 * They are built from the calls of hutch/lifecycle.h and hutch/agent.h, so they work with every
 * server of the OpenSandbox API. The sandbox of an owner is found by its label. Only Hutch
 * guarantees that an owner has one sandbox: of two concurrent creates with the same idempotency
 * key it runs one. Access is decided by the API key, not by the owner.
 */

struct hutch_ensured {
        const char *sandbox_id;
        const char *status; /* "ready" */
        bool created;       /* false: the sandbox existed */
};
void hutch_ensured_free(struct hutch_ensured *ensured);

/* Returns the sandbox of an owner, ready for use. An existing sandbox is reused, and resumed if it
 * is paused. A failed one is deleted first. options->owner is required. Default timeout: 300 s. */
int hutch_ensure_sandbox(struct hutch_client *client, const struct hutch_sandbox_options *options,
                         struct hutch_ensured **ret, struct hutch_call *call);

/* The same as hutch_delete_sandbox. */
int hutch_destroy_sandbox(struct hutch_client *client, const char *sandbox_id,
                          struct hutch_call *call);

struct hutch_bash {
        size_t size;
        const char *sandbox_id;
        const char *command;
        const char *cwd;    /* may be NULL */
        int64_t timeout_ms; /* the command is killed after this time; 0: never */
};
HUTCH_INITIALISER_(hutch_bash)

/* hutch_discover_execd and hutch_run_command in one call. */
int hutch_execute_bash(struct hutch_client *client, const struct hutch_bash *bash,
                       struct hutch_command_result **ret, struct hutch_call *call);

/* hutch_discover_execd and hutch_download_file in one call; the file is returned in memory. */
int hutch_read_file(struct hutch_client *client, const char *sandbox_id, const char *path,
                    struct hutch_data **ret, struct hutch_call *call);

/* hutch_discover_execd and hutch_upload_files in one call. */
int hutch_write_files(struct hutch_client *client, const char *sandbox_id,
                      const struct hutch_file_upload *files, size_t n, struct hutch_call *call);

/* --- for bridges --- */

/* A command as a PURISTA message carries it. */
struct hutch_purista {
        size_t size;
        const char *command;      /* "executeBash" */
        const char *tenant_id;    /* of the message; NULL: none */
        const char *principal_id; /* of the message; NULL: none */
        const char *payload;      /* the command's payload, a JSON value; NULL: none */
        const char
                *parameter; /* path and query parameters of a gateway, a JSON object; NULL: none */
};
HUTCH_INITIALISER_(hutch_purista)

/* Executes a command on behalf of the tenant and principal of its message. This is for bridges
 * between a message bus and Hutch; hutchd accepts it only from callers that its configuration names
 * as bridges. The result is JSON, and both forms are a success of this call:
 *
 *         {"ok":true,"payload":…,"events":[{"name":"SandboxStarted","payload":{…}}]}
 *         {"ok":false,"error":{"status":404,"message":"…","data":…,"handled":true}}
 *
 * Default timeout: 31 minutes, as a command may run for 30. */
int hutch_purista_command(struct hutch_client *client, const struct hutch_purista *command,
                          struct hutch_data **ret, struct hutch_call *call);

#ifdef __cplusplus
}
#endif

#endif
