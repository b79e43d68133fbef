/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PURISTA_H
#define HUTCH_PURISTA_H

/* PURISTA's names for what a sandbox is used for. Include hutch/hutch.h, where the rules are. */

#include <hutch/agent.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the six commands of PURISTA's sandbox service, by their names --- */

/*
 * createSandbox is hutch_create_sandbox with an owner. All of them are made of the calls above: a
 * sandbox's owner is found by its label, and what is done in a sandbox is done by its agent. So they
 * work with every server; but that an owner has one sandbox only is kept by Hutch alone (which makes one
 * of two creates at the same time, by their idempotency key), and who may use a sandbox is decided by
 * the API key, not by the owner.
 */

struct hutch_ensured {
        const char *sandbox_id;
        const char *status; /* "ready" */
        bool created;       /* false: it was there */
};
void hutch_ensured_free(struct hutch_ensured *ensured);

/* The owner's sandbox, ready to be used: the one there is, if it lives (a paused one is resumed), else
 * a new one; a dead one is deleted first. options->owner is needed. Without a timeout of the call,
 * 300 s. */
int hutch_ensure_sandbox(struct hutch_client *client, const struct hutch_sandbox_options *options,
                         struct hutch_ensured **ret, struct hutch_call *call);

/* hutch_delete_sandbox. */
int hutch_destroy_sandbox(struct hutch_client *client, const char *sandbox_id,
                          struct hutch_call *call);

struct hutch_bash {
        size_t size;
        const char *sandbox_id;
        const char *command;
        const char *cwd;    /* or NULL */
        int64_t timeout_ms; /* the command is killed then; 0: never */
};
HUTCH_INITIALISER_(hutch_bash)

/* hutch_discover_execd and hutch_run_command in one. */
int hutch_execute_bash(struct hutch_client *client, const struct hutch_bash *what,
                       struct hutch_command_result **ret, struct hutch_call *call);

/* hutch_discover_execd and hutch_download_file in one, into memory. */
int hutch_read_file(struct hutch_client *client, const char *sandbox_id, const char *path,
                    struct hutch_data **ret, struct hutch_call *call);

/* hutch_discover_execd and hutch_upload_files in one. */
int hutch_write_files(struct hutch_client *client, const char *sandbox_id,
                      const struct hutch_file_upload *files, size_t n, struct hutch_call *call);

/* --- the same commands as PURISTA's messages carry them, on behalf of whoever sent one --- */

struct hutch_purista {
        size_t size;
        const char *command;      /* "executeBash" */
        const char *tenant_id;    /* as in the message; NULL: it had none */
        const char *principal_id; /* as in the message; NULL: it had none */
        const char *payload;      /* the command's own payload, a JSON value; NULL: it had none */
};
HUTCH_INITIALISER_(hutch_purista)

/* For bridges between a message bus and Hutch, and no other server: the command is carried out for its
 * tenant and principal, so hutchd lets only those call this whom its configuration names as bridges. The
 * answer is JSON,
 *
 *         {"ok":true,"payload":…,"events":[{"name":"SandboxStarted","payload":{…}}]}
 *         {"ok":false,"error":{"status":404,"message":"…","data":…,"handled":true}}
 *
 * and both are a success of this call. Without a timeout of the call, 31 minutes: a command may run for
 * 30. */
int hutch_purista_command(struct hutch_client *client, const struct hutch_purista *what,
                          struct hutch_data **ret, struct hutch_call *call);

#ifdef __cplusplus
}
#endif

#endif
