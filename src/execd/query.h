/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_QUERY_H
#define HUTCH_EXECD_QUERY_H

/* Query parameters that several handlers read. What is wrong is answered here. */

#include "http/req.h"

/* ?path=, resolved (execd/path.h). Missing or empty: 400 MISSING_QUERY. Negative: answered. */
int query_path(struct http_req *req, struct str *ret) must_check;

/* Answers that the query can't be decoded; returns -EINVAL. */
int query_refuse(struct http_req *req);

#endif
