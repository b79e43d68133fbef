/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_BUILD_IMPL_H
#define HUTCH_WARDEN_BUILD_IMPL_H

/* Private to build.c (the steps) and build_prepare.c (what happens before them). */

#include "warden/build.h"

/* In the upper directory of zygotes for the image "host", which has none. */
#define BUILD_WORKSPACE "workspace"

int build__step(struct builder *x, const struct plan_step *s) must_check;

/* A path in the data directory; links are refused. */
int build__open_data(const struct builder *x, const char *path, int *ret_fd) must_check;

#endif
