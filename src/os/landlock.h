/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_LANDLOCK_H
#define HUTCH_OS_LANDLOCK_H

/*
 * Landlock: a process gives up access to files and ports, for itself and all children it starts from then on. It needs
 * no privilege and cannot be undone.
 *
 * A rule set is opened, filled with what stays allowed, and entered. Restrictions that the kernel does not know yet are
 * left out, by the version of its interface (ABI):
 *
 *         1  Linux 5.13   files and directories; nothing may be moved to another directory
 *         2  Linux 5.19   moves to another directory, where both are allowed
 *         3  Linux 6.2    truncation
 *         4  Linux 6.7    TCP: ports to bind and to connect to
 *         5  Linux 6.10   ioctls of devices
 *         6  Linux 6.12   signals to processes outside, and their abstract sockets
 *
 * No version covers stat, chmod and chown, connecting to a unix socket by its path, and files that are open already.
 *
 * A rule belongs to an inode. A file that is replaced by another one of its name is not covered any more: a rule
 * for such files names their directory.
 */

#include "base/compiler.h"

/* What a rule allows, for a file or for everything below a directory. */
enum landlock_access {
        LANDLOCK_READ = 1U << 0,    /* files */
        LANDLOCK_LIST = 1U << 1,    /* directories */
        LANDLOCK_WRITE = 1U << 2,   /* files that exist */
        LANDLOCK_EXECUTE = 1U << 3, /* programs; they and their libraries have to be read as well */
        LANDLOCK_FILES = 1U << 4,   /* create, rename and remove files */
        LANDLOCK_DIRS = 1U << 5,    /* the same for directories */
        LANDLOCK_SOCKETS = 1U << 6, /* create and remove unix sockets */
        LANDLOCK_MAKE_DIR = 1U << 7, /* create directories, and remove none */
};

struct landlock {
        int fd;       /* -EBADF: closed */
        unsigned abi; /* of the kernel */
};

#define LANDLOCK_NULL ((struct landlock){ -EBADF, 0 })

/* What a rule set restricts besides files. */
enum landlock_scope {
        LANDLOCK_BIND = 1U << 0,     /* TCP ports: only those of landlock_allow_bind */
        LANDLOCK_CONNECT = 1U << 1,  /* TCP ports: only those of landlock_allow_connect */
        LANDLOCK_SIGNALS = 1U << 2,  /* only to processes that have entered the same rule set */
        LANDLOCK_ABSTRACT = 1U << 3, /* the same for abstract sockets that others listen on */
};

/* The version of the kernel's interface; 0 if it has none, or if it was disabled at boot. */
unsigned landlock_abi(void);

/* `scopes` is a set of enum landlock_scope. -EOPNOTSUPP: the kernel has no Landlock. */
int landlock_open(struct landlock *l, unsigned scopes) must_check;
void landlock_close(struct landlock *l);

/* `fd` may be of O_PATH. Access that a file does not have, such as LANDLOCK_LIST, is left out for files. */
int landlock_allow(struct landlock *l, int fd, unsigned access) must_check;

/* 0 for ports is that of bind(2): any. Without effect if the kernel or the rule set does not restrict them. */
int landlock_allow_bind(struct landlock *l, uint16_t port) must_check;
int landlock_allow_connect(struct landlock *l, uint16_t port) must_check;

/* Needs no_new_privs (os/confine.h). Only the calling thread: the process must be single-threaded. */
int landlock_enter(struct landlock *l) must_check;

#endif
