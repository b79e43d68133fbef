/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPS_OPENAPI_H
#define HUTCH_API_OPS_OPENAPI_H

/*
 * The description of what is served (OpenAPI 3.1), made from the route tables: paths and methods are
 * the router's, bodies the decoder's, answers the encoder's, and words those of struct http_doc. So
 * it can't be out of step with what really happens. Routes without a doc are not described.
 *
 * What is served under /v1 and without it is described once, under /v1.
 */

#include "base/buf.h"
#include "http/route.h"

/* Appends the document. The list ends in NULL. */
void openapi_write(struct buf *b, const struct http_api *const *apis);

#endif
