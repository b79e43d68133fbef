/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_MOUNT_H
#define HUTCH_API_MOUNT_H

/*
 * All APIs together, on one server.
 *
 *         api_open(&api, server)    when the injected resources are there, before it listens
 *         api_drain(&api)           with http_server_drain: streams that would never end do
 *         api_close(&api)           when the server is freed
 *         api_free(&api)            when the loop has turned after that
 */

#include "api/api.h"

/* A negative errno if a table of routes is wrong. */
int api_open(struct api *api, struct http_server *server) must_check;
void api_drain(struct api *api);
void api_close(struct api *api);
void api_free(struct api *api);

/* Every API there is; ends in NULL. */
extern const struct http_api *const api_all[];

#endif
