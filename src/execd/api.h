/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_API_H
#define HUTCH_EXECD_API_H

/*
 * The routes of the agent, a table for each resource, all behind the access token.
 *
 * A resource's file has its handlers and, at its end, its table:
 *
 *         static const struct http_route routes[] = {
 *                 { METHOD_GET, "/ping", .scope = SCOPE_TOKEN, .exec = get_ping },
 *         };
 *         const struct http_api api_health = EXECD_API("health", routes);
 *
 * and is listed once, in api.c. Handlers find the agent with agent_of(req).
 */

#include "http/route.h"

/* Whoever has the access token may do everything: it is the key to one sandbox. */
#define SCOPE_TOKEN 1u

int api_authorize(struct http_req *req, uint32_t scope);
struct str api_shape(struct http_req *req, const struct http_problem *p, struct buf *ret_body);
void api_invalid(struct http_req *req, const struct json_error *e);

#define EXECD_API(title, table)                                                                  \
        {                                                                                        \
                .name = (title), .prefix = "", .routes = (table), .n_routes = ARRAY_SIZE(table), \
                .authorize = api_authorize, .shape = api_shape, .invalid = api_invalid           \
        }

/* Every table there is; ends in NULL. */
extern const struct http_api *const api_tables[];

extern const struct http_api api_commands;
extern const struct http_api api_directories_make;
extern const struct http_api api_entrypoint;
extern const struct http_api api_files;
extern const struct http_api api_files_download;
extern const struct http_api api_files_info;
extern const struct http_api api_files_move;
extern const struct http_api api_files_replace;
extern const struct http_api api_files_upload;
extern const struct http_api api_git;
extern const struct http_api api_health;
extern const struct http_api api_metrics;
extern const struct http_api api_proxy;
extern const struct http_api api_sessions;
extern const struct http_api api_directories;
extern const struct http_api api_tunnel;
extern const struct http_api api_unavailable;

#endif
