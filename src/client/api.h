/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_API_H
#define HUTCH_CLIENT_API_H

/*
 * Includes the public header so that its symbols are exported; everything else is hidden, as the tree is
 * compiled with -fvisibility=hidden. src/client/libhutch.map lists the same names; a test compares it with
 * the library.
 */

#pragma GCC visibility push(default)
#include <hutch/hutch.h>
#pragma GCC visibility pop

#endif
