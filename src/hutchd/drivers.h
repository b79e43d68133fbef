/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_DRIVERS_H
#define HUTCH_HUTCHD_DRIVERS_H

/*
 * The drivers of this program. The table is a file of its own, so that a program for tests has another one.
 */

#include "driver/driver.h"

struct hutchd_driver {
        const char *name; /* as in --driver */
        const char *help; /* one line, for people */
        int (*open)(const struct driver_setup *setup, struct driver **ret, struct err *e);
        bool unconfined; /* sandboxes are children of hutchd: no Landlock (hutchd/confinement.h) */
};

/* Ends in an entry without a name. None is enabled by default. */
extern const struct hutchd_driver hutchd_drivers[];

/* NULL: unknown. */
const struct hutchd_driver *drivers_find(const char *name);

/* ERR_NOT_FOUND, with a list of those that exist. */
int drivers_check(const char *name, struct err *e) must_check;

#endif
