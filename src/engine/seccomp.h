/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_SECCOMP_H
#define HUTCH_ENGINE_SECCOMP_H

/*
 * The filter of system calls, as engines want it: a profile in JSON, made from the table of native
 * sandboxes (plan/seccomp_policy.h) when we are built. Docker takes the profile itself, Podman the path of
 * a file.
 */

#include "base/err.h"
#include "base/str.h"
#include "engine/kind.h"

extern const char engine_seccomp_profile[];

/* "seccomp=…", which lives as long as the program. Writes the file, in our folder, if there has to be
 * one. */
int engine_seccomp_option(enum engine_kind kind, const char *folder, struct str *ret, struct err *e)
        must_check;

#endif
