/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_SHA1_H
#define HUTCH_BASE_SHA1_H

/*
 * SHA-1 (FIPS 180-4), one shot.
 *
 * Only for the WebSocket handshake, where RFC 6455 requires it as a proof that the server read the
 * request. Collisions are cheap: nothing that protects anything may use it.
 */

#include "base/compiler.h"

#define SHA1_SIZE 20

void sha1(const void *p, size_t n, uint8_t ret[static SHA1_SIZE]);

#endif
