/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/opensandbox.h"

#include "base/base.h"

void opensandbox_not_found(struct http_req *req)
{
        struct err e;

        (void) err_set(&e, ERR_NOT_FOUND, "there is no such sandbox");
        api_fail(req, &e, NULL);
}
