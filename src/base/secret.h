/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_SECRET_H
#define HUTCH_BASE_SECRET_H

/*
 * A token, password or key. Opaque on purpose: no conversion, log field or JSON type takes a struct
 * secret, so printing one does not compile. secret_expose is the only way to the bytes and easy to
 * find in a review. They are wiped when freed.
 */

#include "base/compiler.h"
#include "base/str.h"

struct secret;

/* Copies; the caller wipes its own copy. */
struct secret *secret_new(struct str bytes) must_check;
void secret_free(struct secret *s);
void secret_freep(struct secret **s);

/* Takes a time that does not depend on where they differ. A NULL or empty secret matches nothing, so
 * that a key that was never set grants no access. */
bool secret_matches(const struct secret *s, struct str candidate);

/* A NUL follows the bytes. */
struct str secret_expose(const struct secret *s);

/* Overwrites memory; the compiler may not optimise this away. */
void wipe(void *p, size_t n);

#endif
