/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_LAUNCH_H
#define HUTCH_HUTCHD_LAUNCH_H

/*
 * From hutchd to hutch-launcher and back: who starts hutchd with the driver native has three processes.
 *
 *         hutchd (root) ─ reads options and file, prepares the data folder
 *            └─ becomes hutch-launcher (root), which reads nothing
 *                  ├─ hutch-warden (root)
 *                  └─ hutchd --warden-fd 3, which becomes somebody else
 *
 * The first one knows all that is to be known, so that the launcher can be told by plain arguments. Its
 * lock on the warden's folder stays with the launcher: there is one warden for a folder.
 */

#include "hutchd/config.h"

/* Whether these options and this file want it. */
bool launch_is_due(const struct options *o, const struct config *c);

/* Returns only if it fails. argv is that of hutchd. */
int launch(const struct options *o, struct config *c, char **argv, struct err *e) must_check;

#endif
