/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_RESPONSE_H
#define HUTCH_BENCH_RESPONSE_H

/* The small response of http_bench and its peer: as long as that of a health check. */

#define RESPONSE_TYPE "application/json"
#define RESPONSE_JSON "{\"status\":\"ok\"}"

#endif
