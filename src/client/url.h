/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_URL_H
#define HUTCH_CLIENT_URL_H

/*
 * Addresses: of the server, as a person wrote it; of an agent, as a server told it; and of what is
 * asked for, put together from both.
 */

#include "base/buf.h"
#include "base/str.h"

#define URL_MAX (64 * KiB) /* of what we ask for: many paths in one query are long, not endless */

/* http or https, a host, perhaps a port and a path, and nothing else: no user, no query, no fragment.
 * What can't stand in a URL (spaces, control characters) is refused. */
struct url {
        struct str text; /* all of it, without slashes at the end */
        struct str scheme;
        struct str authority; /* host[:port] */
        struct str host;      /* [::1] with its brackets */
        int port;             /* that of the scheme if it is not said */
};

/* -EINVAL; the views look at `text`. */
int url_parse(struct str text, struct url *ret) must_check;

/* The base of all lifecycle calls: the server's address with exactly one /v1 at its end, whether it
 * had one or not. */
void url_add_base(struct buf *b, const struct url *server);

/* The server's address without that /v1, for what is not of the lifecycle API. */
void url_add_root(struct buf *b, const struct url *server);

/* An agent's address as servers tell it, which may lack the scheme: then it is `scheme`. */
void url_add_endpoint(struct buf *b, struct str scheme, struct str endpoint);

/* Appends the pattern; each {} in it takes one `const char *`, whose bytes are escaped so that they
 * stay one segment of a path, or one value of a query, whatever they are. */
void url_add(struct buf *b, const char *pattern, ...);

/* One value, escaped. */
void url_add_escaped(struct buf *b, struct str value);

/* Whether a text can be the name, or the value, of a header of a request. */
bool url_is_header(struct str text, bool name);

#endif
