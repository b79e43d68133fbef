/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_WS_IMPL_H
#define HUTCH_HTTP_WS_IMPL_H

/* Between ws.c (a connection's life) and ws_handshake.c (its beginning). */

#include "http/ws.h"

void ws__init(struct http_ws *ws, enum ws_role role, struct http_ws_group *g,
              const struct http_ws_ops *ops, const struct http_ws_options *options);

/* The connection stands. */
void ws__start(struct http_ws *ws);

/* Closes because of an error: says why and hears nothing more. */
void ws__fail(struct http_ws *ws, uint16_t code, const char *reason);

#endif
