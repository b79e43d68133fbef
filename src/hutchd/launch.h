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

/* Becomes hutch-launcher if these options and this file need it, and then returns only on failure. Returns 0 if they do
 * not, or if the file is invalid: the caller reads it again and reports that. argv is that of hutchd. */
int launch(const struct options *o, char **argv, struct err *e) must_check;

#endif
