/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_URL_H
#define HUTCH_CLIENT_URL_H

/* URLs: of the server, as the user wrote it; of an agent, as the server sent it; and of requests. */

#include "base/buf.h"
#include "base/str.h"

#define URL_MAX (64 * KiB) /* of a request: many paths in one query are long, but bounded */

/* http or https, a host, optionally a port and a path. No user, query or fragment, and no characters that
 * are invalid in a URL. */
struct url {
        struct str text; /* without trailing slashes */
        struct str scheme;
        struct str authority; /* host[:port] */
        struct str host;      /* [::1] with its brackets */
        int port;             /* default: that of the scheme */
};

/* -EINVAL if malformed. The views point into `text`. */
int url_parse(struct str text, struct url *ret) must_check;

/* The base of lifecycle calls: the server's URL with exactly one /v1 at its end. */
void url_add_base(struct buf *b, const struct url *server);

/* The server's URL without /v1, for paths outside of the lifecycle API. */
void url_add_root(struct buf *b, const struct url *server);

/* An agent's URL as servers send it; a missing scheme becomes `scheme`. */
void url_add_endpoint(struct buf *b, struct str scheme, struct str endpoint);

/* Appends the pattern. Each {} takes one `const char *`, escaped so that it is one path segment or one
 * query value. */
void url_add(struct buf *b, const char *pattern, ...);

/* One value, escaped. */
void url_add_escaped(struct buf *b, struct str value);

/* Whether a text is valid as the name, or the value, of a request header. */
bool url_is_header(struct str text, bool name);

#endif
