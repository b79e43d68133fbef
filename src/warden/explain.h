/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_EXPLAIN_H
#define HUTCH_WARDEN_EXPLAIN_H

/*
 * The plan of a sandbox, for people: a spec in words of the form KEY=VALUE, and what would be done.
 *
 *         id=a1 image=layers layer=app layer=debian memory=67108864 env=A=b arg=sh arg=-c
 *
 * What is not said is as for a sandbox of the host's image without limits.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "plan/spec.h"

int explain(char *const *words, size_t n, const struct plan_uids *uids, struct buf *ret,
            struct err *e) must_check;

#endif
