/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_BUILD_IMPL_H
#define HUTCH_WARDEN_BUILD_IMPL_H

/* Private to build.c (the steps) and build_prepare.c (what comes before them). */

#include "warden/build.h"

/* The steps of the plan from *step on, and before `end`; *step is where it ended. */
int build__steps(struct builder *x, const struct plan *p, size_t end, size_t *step) must_check;

/* Below the data directory; links are refused. */
int build__open_data(const struct builder *x, const char *path, int *ret_fd) must_check;

/* The root that was built ahead is not what is wanted. */
int build__undo(struct builder *x) must_check;

#endif
