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

/* Whether these options and this file need the launcher. */
bool launch_is_due(const struct options *o, const struct config *c);

/* Returns only on failure. argv is that of hutchd. */
int launch(const struct options *o, struct config *c, char **argv, struct err *e) must_check;

#endif
