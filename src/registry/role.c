/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/keyring.h"

#include "base/base.h"

static const char *const role_names[] = {
        [ROLE_READ] = "read",
        [ROLE_USER] = "user",
        [ROLE_ADMIN] = "admin",
};
ENUM_TABLE(role, role_names, ROLE_MAX_);
