/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_API_H
#define HUTCH_CLIENT_API_H

/*
 * The public header as the library itself sees it: what it declares is exported, all else is hidden
 * (the whole tree is compiled with -fvisibility=hidden). src/client/libhutch.map repeats the names, as
 * the promise that a test compares with what the linker made.
 */

#pragma GCC visibility push(default)
#include <hutch/hutch.h>
#pragma GCC visibility pop

#endif
