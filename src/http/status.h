/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_STATUS_H
#define HUTCH_HTTP_STATUS_H

#include "base/str.h"

/* "Not Found"; empty, as RFC 9112 allows, for a status that has no name. */
struct str http_status_text(int status);

/* 1xx, 204 and 304 never carry a body. */
bool http_status_has_body(int status);

#endif
