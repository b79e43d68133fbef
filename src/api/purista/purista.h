/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_PURISTA_PURISTA_H
#define HUTCH_API_PURISTA_PURISTA_H

/*
 * PURISTA's service Sandbox, version 1: six commands, over HTTP as PURISTA's gateway shows them, and for
 * hutch-bridge, which brings them from message buses.
 *
 *         POST   /api/v1/sandbox             createSandbox     DELETE /api/v1/sandbox/{id}        destroy…
 *         POST   /api/v1/sandbox/ensure      ensureSandbox     GET    /api/v1/sandbox/{id}/file   readFile
 *         POST   /api/v1/sandbox/{id}/bash   executeBash       POST   /api/v1/sandbox/{id}/files  writeFiles
 *         POST   /api/v1/purista/command     any of them, on behalf of others: for bridges
 *
 * Who asks is a tenant and a principal, which become organizationId and userId of what he makes. Over
 * HTTP that is what the API key says; a bridge says it itself, for the tenants that it may act for. How
 * a command is checked and answered is told in docs/internals/purista.md.
 */

#include "api/access/access.h"
#include "api/api.h"

/* What sandboxes of PURISTA are, and how much of one call. */
struct purista_config {
        struct str image;  /* null view: the commands are not offered */
        struct str driver; /* null view: the default */
        struct str network;
        struct json_map limits; /* resourceLimits of a create request */
        size_t output_max;      /* bytes, of each of stdout and stderr */
        size_t file_max;        /* bytes that one readFile or writeFiles moves */
};

#define PURISTA_OUTPUT_DEFAULT (4 * MiB)
#define PURISTA_FILE_DEFAULT   (4 * MiB)
#define PURISTA_LIMIT_MAX      (64 * MiB)

extern const struct http_api purista_api;

#endif
