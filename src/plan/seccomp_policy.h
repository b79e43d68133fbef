/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PLAN_SECCOMP_POLICY_H
#define HUTCH_PLAN_SECCOMP_POLICY_H

/*
 * Which system calls a process may use, as tables: one policy for the processes of a sandbox, and one for hutch-warden,
 * which builds on it.
 *
 * The tables are the only place where this is decided. They are not part of any program: seccomp_gen.c turns each
 * into a filter at build time (plan/seccomp.h), and the tests compare the filters with them.
 *
 * Each system call has one verdict:
 *
 *   - those of `allowed` are allowed;
 *   - those of `absent` return ENOSYS: callers fall back to an older call;
 *   - those of `agent_only` are allowed here, and return ENOSYS in commands and in containers of engines;
 *   - those of `rules` depend on their arguments: the first clause whose conditions all hold decides, else
 *     `otherwise`;
 *   - those that only the base of the policy names: what base->absent has returns ENOSYS; whatever the base may allow,
 *     with some arguments or with all, is allowed with all;
 *   - every other one that has a name returns EPERM;
 *   - a number without a name, and every number above SECCOMP_LAST, returns ENOSYS: to a C library that is newer
 *     than this table the kernel looks old, not hostile.
 *
 * The other system call interfaces of a processor (i386 and x32 on x86-64) return ENOSYS as well.
 *
 * Conditions compare 32 bits, because that is what the kernel uses of each argument named here: an int, an unsigned
 * int, or (clone) the lower half of a long. Comparing all 64 bits would let TIOCSTI pass with a bit set above. To
 * test a pointer for NULL takes two conditions: upper halves have numbers of their own.
 */

#include "base/compiler.h"

/* Verdicts are return values of the filter: SECCOMP_RET_ALLOW, or SECCOMP_RET_ERRNO with an errno. */
#define SECCOMP_PASS       0x7fff0000U
#define SECCOMP_ERRNO(e)   (0x00050000U | (uint32_t) (e))
#define SECCOMP_ARGS       6
#define SECCOMP_HIGH(arg)  (SECCOMP_ARGS + (arg))
#define SECCOMP_CONDS_MAX  3
#define SECCOMP_NAMES_MAX  8
#define SECCOMP_CLAUSE_MAX 20

/* The highest number in the table (Linux 6.17). */
#define SECCOMP_LAST 469

struct seccomp_cond {
        unsigned arg; /* 0 to 5, or SECCOMP_HIGH of these */
        uint32_t mask, value;
};

struct seccomp_clause {
        struct seccomp_cond all[SECCOMP_CONDS_MAX];
        unsigned n; /* at least one */
        uint32_t verdict;
};

struct seccomp_rule {
        const char *names[SECCOMP_NAMES_MAX]; /* NULL-terminated unless full */
        struct seccomp_clause clauses[SECCOMP_CLAUSE_MAX];
        unsigned n_clauses;
        uint32_t otherwise;
};

/* Calls that the libseccomp of the build may not know. From 424 on the numbers are the same on all architectures. */
struct seccomp_recent {
        const char *name;
        int nr;
};

struct seccomp_policy {
        const struct seccomp_policy *base; /* NULL: none. A base has none itself */
        const char *const *allowed, *const *absent, *const *agent_only;
        const struct seccomp_rule *rules;
        size_t n_allowed, n_absent, n_agent_only, n_rules;
};

extern const struct seccomp_policy seccomp_sandbox_policy;
extern const struct seccomp_policy seccomp_warden_policy; /* seccomp_policy_warden.c */
extern const struct seccomp_recent seccomp_recent[];
extern const size_t seccomp_n_recent;

#endif
