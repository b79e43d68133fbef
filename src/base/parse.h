/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_PARSE_H
#define HUTCH_BASE_PARSE_H

/*
 * Numbers from text. The complete text must be a number: no sign where none belongs, no spaces, no
 * overflow, no locale. -EINVAL if it is not a number, -ERANGE if it is too large.
 */

#include "base/clock.h"
#include "base/compiler.h"
#include "base/str.h"

int parse_u64(struct str s, uint64_t *ret) must_check;
int parse_i64(struct str s, int64_t *ret) must_check;
int parse_u64_max(struct str s, uint64_t max, uint64_t *ret) must_check;
int parse_port(struct str s, uint16_t *ret) must_check; /* 1 to 65535 */

/* "250ms", "30s", "5m", "1h"; a number without a unit is refused. */
int parse_duration(struct str s, usec_t *ret) must_check;

/* "512", "64Ki", "10M", "2Gi": decimal and binary suffixes k M G T, Ki Mi Gi Ti. */
int parse_bytes(struct str s, uint64_t *ret) must_check;

#endif
