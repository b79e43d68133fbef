/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_OPTIONS_H
#define HUTCH_CLIENT_OPTIONS_H

/*
 * Structs that callers fill, whose size says which header they were compiled with.
 *
 * A shorter one is a caller's of older times: what it lacks is zero. A longer one is all right as long
 * as what we do not know is zero; otherwise it asks for something that would silently not happen.
 */

#include "base/compiler.h"

/* `from` may be NULL: then *to becomes what _init gives. HUTCH_INVALID if its size is 0, which is a
 * struct nobody initialised; HUTCH_UNSUPPORTED as above. */
int options_copy(void *to, size_t size, const void *from) must_check;

#endif
