/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_MULTIPART_IMPL_H
#define HUTCH_HTTP_MULTIPART_IMPL_H

/* Between multipart.c (the stream) and multipart_head.c (the header of a part). Both functions return
 * NULL, or a static text that describes the error. */

#include "http/multipart.h"

/* Checks one line, without its CR LF, as soon as it is complete. */
const char *multipart__check_line(struct str line);

/* Parses all lines of a header that passed multipart__check_line, each with its CR LF. Names are decoded
 * in place; the views of *ret point into the header. */
const char *multipart__parse_head(char *p, size_t n, struct multipart_part *ret);

#endif
