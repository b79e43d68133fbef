/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_MULTIPART_IMPL_H
#define HUTCH_HTTP_MULTIPART_IMPL_H

/* Between multipart.c (the stream) and multipart_head.c (one part's header). Both functions return
 * NULL, or what is wrong as a static text. */

#include "http/multipart.h"

/* One line without its CR LF, as soon as it is there. */
const char *multipart__check_line(struct str line);

/* All lines of a header that passed multipart__check_line, each with its CR LF. Names are decoded
 * in place; the views of *ret point into the header. */
const char *multipart__parse_head(char *p, size_t n, struct multipart_part *ret);

#endif
