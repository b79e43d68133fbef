/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_CONFINEMENT_H
#define HUTCH_HUTCHD_CONFINEMENT_H

/*
 * hutchd under Landlock (os/landlock.h): from the moment the data directory is open, and before it parses anything of a
 * store, a sandbox or a client, hutchd reaches only what its configuration names.
 *
 *         data directory                         everything
 *         directory of the configuration file    read: a reload finds a file that was replaced
 *         directories of log files               write, create and rename: they are rotated and opened again
 *         directories of unix sockets            create and remove sockets
 *         files with secrets                     read
 *         /dev/null, /dev/urandom                and what /metrics and the drivers read in /proc
 *
 * TCP ports other than those of `listen` cannot be bound. Without a cluster and without NATS, no TCP port can be
 * connected to but that of Redis: sandboxes and engines are reached by unix sockets.
 *
 * Programs that hutchd starts inherit all of it, so what they need belongs to the rules: with hutch-engine or
 * hutch-store-nats their directory, the system's libraries and /proc; with the former the right to create directories,
 * for parts of volumes, wherever the engine has them; with the latter /etc and the system's certificates. Workers are
 * started after it, so the first one has the same restrictions as one that replaces it. hutch-warden is no
 * child of hutchd and is not affected.
 *
 * The rules are those of the start. A reload with a log file in another directory is refused.
 */

#include "hutchd/config.h"
#include "os/sd_notify.h"

/* If the configuration requires it. */
#define CONFINEMENT_MISSING                                                                      \
        "this kernel has no Landlock, which the configuration requires; enable it (Linux 5.13, " \
        "lsm=landlock at boot), or set landlock to auto"

#define CONFINEMENT_PATHS_MAX 64
#define CONFINEMENT_PINS_MAX  4

struct confinement_path {
        const char *path;
        unsigned access; /* enum landlock_access */
};

struct confinement {
        struct confinement_path paths[CONFINEMENT_PATHS_MAX];
        size_t n;
        uint16_t bind[LISTEN_MAX], connect[1];
        size_t n_bind, n_connect;
        unsigned scopes; /* enum landlock_scope */
        int pins[CONFINEMENT_PINS_MAX];
        size_t n_pins;
};

/* The rules of a configuration. `file` is the configuration file, or NULL. Paths are in the configuration's arena. */
int confinement_make(struct config *c, const char *file, const struct sd_notify *notify,
                     struct confinement *ret, struct err *e) must_check;

/* Returns the version of the kernel's interface. 0 if there is none, unless the configuration requires it: then
 * ERR_UNSUPPORTED. Paths that do not exist, or that we cannot reach, are left out. */
int confinement_enter(struct confinement *x, enum config_landlock mode, struct err *e) must_check;

void confinement_done(struct confinement *x);

#endif
