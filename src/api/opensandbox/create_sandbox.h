/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPENSANDBOX_CREATE_SANDBOX_H
#define HUTCH_API_OPENSANDBOX_CREATE_SANDBOX_H

/*
 * POST /sandboxes: 202 with what was made, Running or, if that takes longer, Pending.
 *
 * With the header Idempotency-Key a client that does not know whether its request arrived may send
 * it again: the same key and body give the same sandbox, another body is refused with 409.
 */

#include "http/req.h"

void create_sandbox(struct http_req *req);

#endif
