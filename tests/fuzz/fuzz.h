/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_FUZZ_H
#define HUTCH_TESTS_FUZZ_H

/* What a fuzz target defines. It states what must hold with ASSERT, which is on in every build. */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

#endif
