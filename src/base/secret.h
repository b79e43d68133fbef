/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_SECRET_H
#define HUTCH_BASE_SECRET_H

/*
 * A token, password or key. Opaque on purpose: there is no conversion, log field or JSON type that
 * takes a struct secret, so printing one does not compile. The bytes come out through
 * secret_expose only, whose name is easy to look for in a review, and are wiped when freed.
 */

#include "base/compiler.h"
#include "base/str.h"

struct secret;

/* Copies; the caller wipes its own copy. */
struct secret *secret_new(struct str bytes) must_check;
void secret_free(struct secret *s);
void secret_freep(struct secret **s);

/* In a time that does not depend on where they differ. A NULL or empty secret matches nothing, so
 * that a key somebody forgot to set opens nothing. */
bool secret_matches(const struct secret *s, struct str candidate);

/* A NUL follows the bytes. */
struct str secret_expose(const struct secret *s);

/* Overwrites memory in a way that the compiler may not leave out. */
void wipe(void *p, size_t n);

#endif
