/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_LIMITS_H
#define HUTCH_BASE_LIMITS_H

/*
 * The maximum of every buffer that an outsider can fill, with its reason. Limits that an operator
 * may change are defaults of a config struct and refer to these.
 */

#include "base/compiler.h"

#define BUF_MAX_LOG_LINE  (16 * KiB) /* a line longer than this is cut and says so */
#define BUF_MAX_JSON      (8 * MiB)  /* largest document we build in memory */
#define JSON_VALUES_MAX   100000     /* parsed, "[]," costs some 40 times its bytes */
#define JSON_DEPTH_MAX    64         /* deeper nesting is an attack, not a request */
#define ARENA_MAX_REQUEST (4 * MiB)  /* head, decoded body and response of one request */
#define HTTP_HEAD_MAX     (64 * KiB) /* request line and headers: Node and nginx have 16-32 KiB */
#define HTTP_TARGET_MAX   (16 * KiB) /* a list filter with many labels is long, not endless */
#define HTTP_HEADERS_MAX  128        /* real clients send fewer than 40 */
#define HTTP_BODY_MAX     (1 * MiB)  /* collected bodies; streamed ones have their own limits */

#endif
