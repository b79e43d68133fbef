/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_EXPLAIN_H
#define HUTCH_WARDEN_EXPLAIN_H

/*
 * Prints the plan of a sandbox. The spec is given in words of the form KEY=VALUE:
 *
 *         id=a1 image=layers layer=app layer=debian memory=67108864 env=A=b arg=sh arg=-c
 *
 * The default is a sandbox of the image "host" without limits.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "plan/spec.h"

int explain(char *const *words, size_t n, const struct plan_uids *uids, struct buf *ret,
            struct err *e) must_check;

#endif
