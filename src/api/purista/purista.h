/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_PURISTA_PURISTA_H
#define HUTCH_API_PURISTA_PURISTA_H

/*
 * PURISTA's service Sandbox, version 1 (model/purista.h): six commands below /api/v1, over HTTP as PURISTA's gateway
 * offers them, and POST /api/v1/purista/command, by which hutch-bridge brings any of them from a message bus.
 *
 * A caller is a tenant and a principal, which become organizationId and userId of the sandboxes it creates. Over HTTP the
 * API key names them; a bridge names them itself, for the tenants that it may act for. docs/internals/purista.md has the
 * checks and responses.
 */

#include "api/access/access.h"
#include "api/api.h"

/* The sandboxes that the commands create, and the limits of one call. */
struct purista_config {
        struct str image;  /* null view: the commands are not offered */
        struct str driver; /* null view: the default */
        struct str network;
        struct json_map limits; /* resourceLimits of a create request */
        size_t output_max;      /* bytes of stdout, and of stderr */
        size_t file_max;        /* bytes of one readFile or writeFiles */
};

#define PURISTA_OUTPUT_DEFAULT (4 * MiB)
#define PURISTA_FILE_DEFAULT   (4 * MiB)
#define PURISTA_LIMIT_MAX      (64 * MiB)

#define PURISTA_ANONYMOUS \
        "Sandbox commands require message tenantId and principalId for ownership enforcement."

extern const struct http_api purista_api;

#endif
