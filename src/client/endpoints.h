/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_ENDPOINTS_H
#define HUTCH_CLIENT_ENDPOINTS_H

/* Ways into sandboxes, for operations that name a sandbox and want its agent. */

#include "client/op.h"

/* Asks for the agent of the sandbox, then calls `next`, which may use the endpoint until it returns;
 * or ends the operation. */
void op_discover(struct op *op, const char *id,
                 void (*next)(struct op *op, const struct hutch_endpoint *agent));

#endif
