/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_ANSWER_H
#define HUTCH_BENCH_ANSWER_H

/* The small answer that our server and its peer both give: as long as that of a health check. */

#define ANSWER_TYPE "application/json"
#define ANSWER_JSON "{\"status\":\"ok\"}"

#endif
