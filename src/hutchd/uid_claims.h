/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_UID_CLAIMS_H
#define HUTCH_HUTCHD_UID_CLAIMS_H

/*
 * The uids of an installation with the driver native: those of its sandboxes, and, on a host without the user hutch,
 * that of hutchd itself, the one below them.
 *
 * Installations on one host must not share them: a sandbox could signal the sandboxes of the other one, and one hutchd
 * could read the data of the other. The kernel has no list of uids in use, so installations claim them:
 *
 *         DATA/uids                  BASE:COUNT: what the installation in this data directory has
 *         /var/lib/hutch-uids/BASE   COUNT OWN DATA: who has it
 *
 * The data directories are the truth and the second only finds them. A claim is valid as long as the file in its
 * data directory says the same, so an installation gives up its uids when its data directory is removed, and takes
 * them along when it is moved. Both files are root's; a claim is made by the hutchd that is still root.
 *
 * Uids are chosen once. A hutchd whose uids another one has does not start: its files and its running sandboxes have
 * them.
 */

#include "base/err.h"
#include "base/str.h"

#define UID_CLAIMS_DIR "/var/lib/hutch-uids"
#define UID_BASE_FIRST 268435456U /* above the uids of people and of most container tools */
#define UID_RECORD     "uids"     /* in the data directory */

struct uid_range {
        uint32_t base, count; /* multiples of PLAN_UIDS. base 0: any */
};

/* "BASE:COUNT", or "COUNT" for any base. Neither root's uids, nor the last one, which is invalid. */
bool uid_range_parse(struct str text, struct uid_range *ret);

struct uid_request {
        const char *claims;          /* UID_CLAIMS_DIR */
        const char *data;            /* data directory; made if it is missing */
        struct uid_range configured; /* count 0: not configured */
        bool own;                    /* hutchd is the user base - 1 */
};

/* ERR_CONFLICT: another installation has the uids, or all are taken. */
int uid_claims_take(const struct uid_request *q, struct uid_range *ret, struct err *e) must_check;

#endif
