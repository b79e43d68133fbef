/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_SECURITY_PROBE_H
#define HUTCH_TESTS_SECURITY_PROBE_H

/*
 * What a hostile tenant tries, as a program that is taken into a sandbox and run there.
 *
 * An *attempt* is a function that really does it and says what came of it: 0 or more if it worked, a
 * negative errno if it was refused. Each is made in a child of its own, in an empty directory, so that
 * none spoils the next. The table says what must come of it: one of a few errors, a signal, or that it
 * works and is harmless; the test checks its effect from outside. An unexpected error is a deviation
 * like success: an attempt that fails because it is wrong shows nothing.
 *
 * For the same reason most attempts are also made outside of every sandbox, as root of the host in
 * namespaces of their own, and must work there (OUTSIDE). One that does not names a feature that this
 * kernel lacks; it is said, and shows nothing. Attempts that would harm the host are made in
 * sandboxes only.
 *
 * The program needs no library and no file of the sandbox. It knows nothing of the tree it is built in.
 */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Never an errno: it was ended by a signal; the kernel has no such thing. */
#define PROBE_SIGNAL(s) (1000 + (s))
#define PROBE_LACKS     (-2000L)

typedef long probe_fn(void);

enum probe_where {
        INSIDE,  /* only ever in a sandbox: it would harm the host, or means nothing there */
        OUTSIDE, /* also on the host itself, where it works */
};

struct probe {
        int number; /* of the case */
        const char *name;
        probe_fn *run;
        enum probe_where where;
        int errors[4]; /* those that count as refused; none: it works */
};

struct probe_theme {
        const struct probe *probes;
        size_t n;
};

#define THEME(table)                                        \
        {                                                   \
                (table), sizeof(table) / sizeof((table)[0]) \
        }
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

extern const struct probe_theme theme_mounts, theme_namespaces, theme_files, theme_devices,
        theme_calls, theme_abi, theme_processes, theme_privileges, theme_sockets, theme_descriptors,
        theme_ipc, theme_tables;

/* --- what attempts are made of --- */

/* -1 with errno, as calls answer, to what attempts answer. */
long outcome(long r);

/* A text that goes into the report of the attempt that runs. */
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);

/* The kernel has no such thing; says which. */
long lacks(const char *feature);

/* Opens it, and closes it again. */
long try_open(const char *path, int flags);

/* Opens it and writes to it. */
long try_write(const char *path, const char *text);

/* The first of the paths for which it works, else the last error. What does not exist is passed over,
 * unless none exists: -ENOENT. */
long try_each(const char *const *paths, size_t n, long (*fn)(const char *path));

/* Reads a small file. The number of bytes, which are followed by a NUL, or a negative errno. */
long read_file(const char *path, char *to, size_t n);

/* Runs it in a child: what it answered, -PROBE_SIGNAL(s) if it was killed. */
long in_child(probe_fn *fn);

/* --- other ways to be called --- */

/* Things that fill something up, or live on: "NAME [NUMBER]". Each says what it reached in a line and
 * goes on holding it until its standard input ends. */
int bomb_main(int argc, char **argv);

/* What a single look or act inside says: "NAME [ARGUMENT...]". */
int act_main(int argc, char **argv);

#endif
