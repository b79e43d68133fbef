/* SPDX-License-Identifier: Apache-2.0 */
#include "client/options.h"

#include "client/api.h"

#include "base/banned.h"

int options_copy(void *to, size_t size, const void *from)
{
        const unsigned char *bytes = from;
        size_t given;

        memset(to, 0, size);
        memcpy(to, &size, sizeof(size));
        if (!from)
                return 0;
        memcpy(&given, from, sizeof(given));
        if (given < sizeof(given))
                return HUTCH_INVALID;
        for (size_t i = size; i < given; i++)
                if (bytes[i])
                        return HUTCH_UNSUPPORTED;
        memcpy(to, from, given < size ? given : size);
        return 0;
}
