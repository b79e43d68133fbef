/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_IMPORT_IMPL_H
#define HUTCH_WARDEN_IMPORT_IMPL_H

/* Private to import.c (the parent) and import_child.c. */

#include "warden/import.h"

/* The new namespaces of the child. */
#define IMPORT_NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET)

struct import_child {
        const char *dir; /* path of an empty one */
        int input, userns;
        int report; /* a struct import_report is written to it */
};

struct import_report {
        bool failed;
        struct err e;
};

never_returns void import__child(const struct import_child *c);

#endif
