/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PLAN_SECCOMP_POLICY_H
#define HUTCH_PLAN_SECCOMP_POLICY_H

/*
 * What the processes of a sandbox may ask of the kernel, as a table.
 *
 * The table is the only place where it is decided. It is part of no program: seccomp_gen.c turns it
 * into a filter when we are built (plan/seccomp.h), and the tests hold the filter against it.
 *
 * A system call has one verdict:
 *
 *   - those of seccomp_allowed pass;
 *   - those of seccomp_absent do not exist (ENOSYS): callers have an older way and take it;
 *   - those of seccomp_rules are judged by their arguments: the first clause whose conditions all
 *     hold decides, else `otherwise`;
 *   - every other one that has a name is refused (EPERM);
 *   - a number without a name, and every number above SECCOMP_LAST, does not exist (ENOSYS): a C
 *     library that is newer than this table finds an old kernel, not a hostile one.
 *
 * The other system call interfaces of a processor (i386 and x32 on x86-64) do not exist either.
 *
 * Conditions compare 32 bits, because that is what the kernel looks at in each argument named here:
 * an int, an unsigned int, or (clone) the lower half of a long. A comparison of all 64 would let
 * TIOCSTI pass with a bit set above. Whether a pointer is NULL takes two conditions: upper halves have
 * numbers of their own.
 */

#include "base/compiler.h"

/* Verdicts are what a filter returns: SECCOMP_RET_ALLOW, or SECCOMP_RET_ERRNO with an errno. */
#define SECCOMP_PASS       0x7fff0000U
#define SECCOMP_ERRNO(e)   (0x00050000U | (uint32_t) (e))
#define SECCOMP_ARGS       6
#define SECCOMP_HIGH(arg)  (SECCOMP_ARGS + (arg))
#define SECCOMP_CONDS_MAX  3
#define SECCOMP_NAMES_MAX  8
#define SECCOMP_CLAUSE_MAX 20

/* The highest number that the table knows about (Linux 6.17). */
#define SECCOMP_LAST 469

struct seccomp_cond {
        unsigned arg; /* 0 to 5, or SECCOMP_HIGH of these */
        uint32_t mask, value;
};

struct seccomp_clause {
        struct seccomp_cond all[SECCOMP_CONDS_MAX];
        unsigned n; /* of these; a clause has at least one */
        uint32_t verdict;
};

struct seccomp_rule {
        const char *names[SECCOMP_NAMES_MAX]; /* NULL-terminated unless full */
        struct seccomp_clause clauses[SECCOMP_CLAUSE_MAX];
        unsigned n_clauses;
        uint32_t otherwise;
};

/* Numbers that the libseccomp we are built with may not know yet. From 424 on they are the same for
 * every processor. */
struct seccomp_recent {
        const char *name;
        int nr;
};

extern const char *const seccomp_allowed[], *const seccomp_absent[];
extern const struct seccomp_rule seccomp_rules[];
extern const struct seccomp_recent seccomp_recent[];
extern const size_t seccomp_n_allowed, seccomp_n_absent, seccomp_n_rules, seccomp_n_recent;

#endif
