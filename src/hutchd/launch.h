/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_LAUNCH_H
#define HUTCH_HUTCHD_LAUNCH_H

/*
 * With the driver native, a hutchd that was started as root becomes hutch-launcher, which starts three processes.
 *
 *         hutchd (root) ─ reads options and file, prepares the data directory
 *            └─ becomes hutch-launcher (root), which parses nothing
 *                  ├─ hutch-warden (root)
 *                  └─ hutchd --warden-fd 3, which becomes an unprivileged user
 *
 * The first process knows everything, so the launcher gets plain argument lists. The lock on the directory of the
 * warden stays with the launcher: there is one warden for a directory.
 */

#include "hutchd/config.h"

/* Becomes hutch-launcher and returns only on failure, if these options and this file need it; else returns 0. The latter
 * also if the file is invalid, which the caller finds when it reads the file. argv is that of hutchd. */
int launch(const struct options *o, char **argv, struct err *e) must_check;

#endif
