/* SPDX-License-Identifier: Apache-2.0 */

/*
 * seccomp-profile-gen ARCHITECTURE > profile.c: the table of plan/seccomp_policy.h as a profile for container
 * engines, in JSON, as a constant in C. Runs at build time.
 *
 * A profile can express less than our filter:
 *
 *   - its rules have no order. "The first clause that holds" is written as clauses that exclude each other; a
 *     refusal that only changes the error number and overlaps with others is left out, and such calls
 *     fail with EPERM.
 *   - it can't express "all but these values" for half of an argument. Where a table has few values for one system
 *     call, the others are listed by their leading bits, 32 lines for a value; else all 64 bits are
 *     compared. Those are rules that keep a sandbox's programs from its own agent's priority, where the
 *     kernel looks at the lower half: there the profile is weaker than the filter.
 *   - numbers without a name are left to the engine's runtime, which returns ENOSYS for those that are
 *     newer than the profile.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "plan/seccomp_policy.h"

#define VALUES_MAX 8
#define LOWER      0xffffffffULL

static const struct {
        const char *processor, *name;
} processors[] = {
        { "x86_64", "SCMP_ARCH_X86_64" },
        { "aarch64", "SCMP_ARCH_AARCH64" },
        { "riscv64", "SCMP_ARCH_RISCV64" },
};

/* --- lines of the profile, as pieces of a C string --- */

static const char *separator = "";

static void begin(const char *const *names, size_t n)
{
        printf("\"%s{\\\"names\\\":[", separator);
        separator = ",";
        for (size_t i = 0; i < n && names[i]; i++)
                printf("%s\\\"%s\\\"", i > 0 ? "," : "", names[i]);
        printf("],");
}

static void verdict(uint32_t v)
{
        if (v == SECCOMP_PASS)
                printf("\\\"action\\\":\\\"SCMP_ACT_ALLOW\\\"");
        else
                printf("\\\"action\\\":\\\"SCMP_ACT_ERRNO\\\",\\\"errnoRet\\\":%u", v & 0xffffU);
}

static void end(void)
{
        printf("}\"\n");
}

static void argument(unsigned index, const char *op, unsigned long long a, unsigned long long b)
{
        printf("{\\\"index\\\":%u,\\\"value\\\":%llu,\\\"valueTwo\\\":%llu,\\\"op\\\":\\\"%s\\\"}",
               index, a, b, op);
}

/* --- clauses --- */

static bool exclude(const struct seccomp_clause *a, const struct seccomp_clause *b)
{
        for (unsigned i = 0; i < a->n; i++)
                for (unsigned k = 0; k < b->n; k++)
                        if (a->all[i].arg == b->all[k].arg
                            && (a->all[i].value & b->all[k].mask)
                                       != (b->all[k].value & a->all[i].mask))
                                return true;
        return false;
}

static void clause(const struct seccomp_rule *r, const struct seccomp_clause *c)
{
        begin(r->names, SECCOMP_NAMES_MAX);
        verdict(c->verdict);
        printf(",\\\"args\\\":[");
        for (unsigned i = 0; i < c->n; i++) {
                if (i > 0)
                        putchar(',');
                argument(c->all[i].arg, "SCMP_CMP_MASKED_EQ", c->all[i].mask & LOWER,
                         c->all[i].value);
        }
        printf("]");
        end();
}

/* Calls that match no clause are refused: only the clauses are written. */
static void listed(const struct seccomp_rule *r)
{
        for (unsigned i = 0; i < r->n_clauses; i++) {
                bool alone = true;

                for (unsigned before = 0; before < i; before++)
                        alone &= exclude(&r->clauses[before], &r->clauses[i]);
                if (r->clauses[i].verdict == SECCOMP_PASS || alone)
                        clause(r, &r->clauses[i]);
        }
        if (r->n_clauses > 0)
                return;
        begin(r->names, SECCOMP_NAMES_MAX);
        verdict(r->otherwise);
        end();
}

/* --- all but some --- */

/* Walks the tree of values under the mask of one condition, the n-th of each clause, bit by bit from the highest: a branch
 * without refused values is one line. With those before it, which are the same in all clauses. */
static void others(const struct seccomp_rule *r, unsigned n, uint32_t seen, uint32_t prefix)
{
        const struct seccomp_cond *at = &r->clauses[0].all[n];
        struct seccomp_clause passed = { .n = n + 1, .verdict = SECCOMP_PASS };
        uint32_t left = at->mask & ~seen, bit = 1U << 31;
        bool any = false;

        for (unsigned i = 0; i < n; i++)
                passed.all[i] = r->clauses[0].all[i];
        passed.all[n] = (struct seccomp_cond){ at->arg, seen, prefix };
        for (unsigned i = 0; i < r->n_clauses; i++)
                any |= (r->clauses[i].all[n].value & seen) == prefix;
        if (!any)
                clause(r, &passed);
        if (!any || left == 0)
                return;
        while (!(left & bit))
                bit >>= 1;
        others(r, n, seen | bit, prefix);
        others(r, n, seen | bit, prefix | bit);
}

/* Whether the n-th conditions of all clauses test the same bits, and, `equal`, for the same value. */
static bool alike(const struct seccomp_rule *r, unsigned n, bool equal)
{
        const struct seccomp_cond *first = &r->clauses[0].all[n];

        for (unsigned i = 0; i < r->n_clauses; i++) {
                const struct seccomp_cond *c = &r->clauses[i].all[n];

                if (r->clauses[i].n <= n || c->arg != first->arg || c->mask != first->mask
                    || (equal && c->value != first->value))
                        return false;
        }
        return true;
}

/* Calls that match no clause are allowed. */
static void all_but(const struct seccomp_rule *r)
{
        const unsigned n = r->clauses[0].n;

        if (!r->names[1] && n == 1 && alike(r, 0, false)) {
                others(r, 0, 0, 0);
                return;
        }
        if (!r->names[1] && n == 2 && alike(r, 0, true) && alike(r, 1, false)) {
                others(r, 0, 0, 0);
                others(r, 1, 0, 0);
                return;
        }
        begin(r->names, SECCOMP_NAMES_MAX);
        verdict(SECCOMP_PASS);
        printf(",\\\"args\\\":[");
        for (unsigned i = 0; i < r->n_clauses; i++) {
                if (i > 0)
                        putchar(',');
                argument(r->clauses[i].all[0].arg, "SCMP_CMP_NE", r->clauses[i].all[0].value, 0);
        }
        printf("]");
        end();
}

/* --- the profile --- */

int main(int argc, char **argv)
{
        const struct seccomp_policy *policy = &seccomp_sandbox_policy;
        const char *processor = argc > 1 ? argv[1] : "";
        size_t at = 0;

        while (at < ARRAY_SIZE(processors) && strcmp(processors[at].processor, processor) != 0)
                at++;
        if (at == ARRAY_SIZE(processors)) {
                (void) fprintf(stderr, "seccomp-profile-gen: %s: unknown processor\n", processor);
                return 1;
        }
        printf("/* Made by seccomp-profile-gen. */\n#include \"engine/container.h\"\n\n"
               "const char engine_seccomp_profile[] =\n"
               "\"{\\\"defaultAction\\\":\\\"SCMP_ACT_ERRNO\\\",\\\"defaultErrnoRet\\\":%d,"
               "\\\"architectures\\\":[\\\"%s\\\"],\\\"syscalls\\\":[\"\n",
               EPERM, processors[at].name);
        begin(policy->allowed, policy->n_allowed);
        verdict(SECCOMP_PASS);
        end();
        begin(policy->absent, policy->n_absent);
        verdict(SECCOMP_ERRNO(ENOSYS));
        end();
        begin(policy->agent_only, policy->n_agent_only);
        verdict(SECCOMP_ERRNO(ENOSYS));
        end();
        for (size_t i = 0; i < policy->n_rules; i++) {
                if (policy->rules[i].otherwise == SECCOMP_PASS)
                        all_but(&policy->rules[i]);
                else
                        listed(&policy->rules[i]);
        }
        printf("\"]}\";\n");
        return 0;
}
