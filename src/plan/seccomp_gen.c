/* SPDX-License-Identifier: Apache-2.0 */

/*
 * seccomp-gen ARCHITECTURE > filter.c: generates the filters of plan/seccomp.h from the tables, at build time.
 * libseccomp knows the numbers of the system calls.
 *
 * A filter is generated backwards. Its jumps only go forward, so the target of a jump exists before the
 * jump: targets are known, and a return that is near enough is reused.
 */

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>

#include "base/banned.h"
#include "plan/seccomp_policy.h"

#define CODE_MAX  BPF_MAXINSNS
#define NEAR      200 /* a conditional jump reaches 255; some get longer before they are written */
#define NOTHING   UINT32_MAX
#define RULE_BASE 1U /* verdicts below the number of rules + 1 are rules: no filter returns them */

static_assert(SECCOMP_PASS == SECCOMP_RET_ALLOW, "as the kernel has it");
static_assert(SECCOMP_ERRNO(EPERM) == (SECCOMP_RET_ERRNO | EPERM), "as the kernel has it");
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the lower half of an argument is elsewhere"
#endif

/* code[0] is the last instruction. A label is an index. */
struct prog {
        const struct seccomp_policy *policy;
        struct sock_filter code[CODE_MAX];
        size_t n;
        size_t blocks[64]; /* of each rule */
};

struct range {
        uint32_t first, verdict;
};

struct processor {
        const char *name;
        uint32_t seccomp, audit;
};

static const struct processor processors[] = {
        { "x86_64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64 },
        { "aarch64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64 },
        { "riscv64", SCMP_ARCH_RISCV64, AUDIT_ARCH_RISCV64 },
};

never_returns static void die(const char *what, const char *name)
{
        (void) fprintf(stderr, "seccomp-gen: %s: %s\n", name, what);
        exit(1);
}

/* --- instructions --- */

static size_t emit(struct prog *p, struct sock_filter insn)
{
        if (p->n == CODE_MAX)
                die("too long", "filter");
        p->code[p->n] = insn;
        return p->n++;
}

static size_t emit_load(struct prog *p, size_t offset)
{
        return emit(p, (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t) offset));
}

/* The label, or a nearby jump to it. */
static size_t near(struct prog *p, size_t label)
{
        uint32_t distance = (uint32_t) (p->n - label - 1);

        return distance <= NEAR
                       ? label
                       : emit(p, (struct sock_filter) BPF_STMT(BPF_JMP | BPF_JA, distance));
}

static size_t emit_branch(struct prog *p, uint16_t op, uint32_t k, const size_t targets[2])
{
        size_t yes = near(p, targets[0]);
        size_t no = near(p, targets[1]);
        struct sock_filter insn = BPF_JUMP(BPF_JMP | op | BPF_K, k, (uint8_t) (p->n - yes - 1),
                                           (uint8_t) (p->n - no - 1));

        return emit(p, insn);
}

static size_t emit_return(struct prog *p, uint32_t verdict)
{
        for (size_t i = p->n; i-- > 0 && p->n - i - 1 <= NEAR;)
                if (p->code[i].code == (BPF_RET | BPF_K) && p->code[i].k == verdict)
                        return i;
        return emit(p, (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, verdict));
}

/* --- arguments --- */

/* The clauses [i, end) of a rule, which agree in their first `depth` conditions; `held` is the argument that is
 * already loaded, `tail` the target if none applies. Clauses that begin with the same condition share its test. */
struct clauses {
        const struct seccomp_rule *rule;
        unsigned i, end, depth, held;
        size_t tail;
};

static size_t emit_clauses(struct prog *p, struct clauses c)
{
        const struct seccomp_clause *first = &c.rule->clauses[c.i];
        const struct seccomp_cond *cond = &first->all[c.depth];
        struct clauses rest = c, group = c;
        size_t targets[2], label;
        bool all, falls;

        if (c.i == c.end)
                return c.tail;
        if (first->n == c.depth)
                return emit_return(p, first->verdict);
        for (group.end = c.i + 1; group.end < c.end; group.end++) {
                const struct seccomp_clause *next = &c.rule->clauses[group.end];
                const struct seccomp_cond *other = &next->all[c.depth];

                if (c.depth >= next->n || cond->arg != other->arg || cond->mask != other->mask
                    || cond->value != other->value)
                        break;
        }
        all = cond->mask == UINT32_MAX;
        falls = c.rule->clauses[group.end - 1].n > c.depth + 1;
        rest.i = group.end;
        rest.held = all && !falls ? cond->arg : NOTHING;
        group.depth++;
        group.held = all ? cond->arg : NOTHING;
        group.tail = targets[1] = emit_clauses(p, rest);
        targets[0] = emit_clauses(p, group);
        label = emit_branch(p, BPF_JEQ, cond->value, targets);
        if (!all)
                label = emit(p,
                             (struct sock_filter) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, cond->mask));
        /* Little-endian; other architectures need another filter in any case. */
        if (c.held != cond->arg)
                label = emit_load(p, offsetof(struct seccomp_data, args)
                                             + cond->arg % SECCOMP_ARGS * 8UL
                                             + (cond->arg >= SECCOMP_ARGS ? 4 : 0));
        return label;
}

/* --- numbers --- */

/* [first, end) of the ranges, split in the middle. */
static size_t emit_tree(struct prog *p, const struct range *r, size_t n)
{
        size_t targets[2], half = n / 2;
        uint32_t verdict = r[0].verdict;

        if (n > 1) {
                targets[0] = emit_tree(p, r + half, n - half);
                targets[1] = emit_tree(p, r, half);
                return emit_branch(p, BPF_JGE, r[half].first, targets);
        }
        return verdict >= RULE_BASE && verdict < RULE_BASE + p->policy->n_rules
                       ? near(p, p->blocks[verdict - RULE_BASE])
                       : emit_return(p, verdict);
}

/* -1: this architecture has no such call. A name that no architecture has is an error in the table. */
static int number_of(const struct processor *on, const char *name)
{
        bool anywhere = false;
        int nr;

        for (size_t i = 0; i < seccomp_n_recent; i++)
                if (strcmp(seccomp_recent[i].name, name) == 0)
                        return seccomp_recent[i].nr <= SECCOMP_LAST ? seccomp_recent[i].nr : -1;
        for (size_t i = 0; i < ARRAY_SIZE(processors) && !anywhere; i++)
                anywhere = seccomp_syscall_resolve_name_arch(processors[i].seccomp, name) >= 0;
        if (!anywhere)
                die("no such system call", name);
        nr = seccomp_syscall_resolve_name_arch(on->seccomp, name);
        return nr <= SECCOMP_LAST ? nr : -1;
}

static void set(const struct processor *on, uint32_t *verdicts, const char *name, uint32_t verdict)
{
        int nr = number_of(on, name);

        if (nr < 0)
                return;
        if (verdicts[nr] != SECCOMP_ERRNO(EPERM))
                die("named twice", name);
        verdicts[nr] = verdict;
}

static void set_rest(const struct processor *on, uint32_t *verdicts, const char *name,
                     uint32_t verdict)
{
        int nr = number_of(on, name);

        if (nr >= 0 && verdicts[nr] == SECCOMP_ERRNO(EPERM))
                verdicts[nr] = verdict;
}

/* What only the base names. It may name calls that this processor does not have. */
static void read_base(const struct processor *on, const struct seccomp_policy *base,
                      uint32_t *verdicts)
{
        for (size_t i = 0; i < base->n_allowed; i++)
                set_rest(on, verdicts, base->allowed[i], SECCOMP_PASS);
        for (size_t i = 0; i < base->n_absent; i++)
                set_rest(on, verdicts, base->absent[i], SECCOMP_ERRNO(ENOSYS));
        for (size_t i = 0; i < base->n_rules; i++) {
                const struct seccomp_rule *rule = &base->rules[i];
                bool may_pass = rule->otherwise == SECCOMP_PASS;

                for (size_t j = 0; j < rule->n_clauses; j++)
                        may_pass |= rule->clauses[j].verdict == SECCOMP_PASS;
                for (size_t j = 0; may_pass && j < SECCOMP_NAMES_MAX && rule->names[j]; j++)
                        set_rest(on, verdicts, rule->names[j], SECCOMP_PASS);
        }
}

static void read_table(const struct processor *on, const struct seccomp_policy *policy,
                       uint32_t verdicts[static SECCOMP_LAST + 2])
{
        for (int nr = 0; nr <= SECCOMP_LAST; nr++) {
                char *name = seccomp_syscall_resolve_num_arch(on->seccomp, nr);

                verdicts[nr] = SECCOMP_ERRNO(name ? EPERM : ENOSYS);
                free(name);
        }
        verdicts[SECCOMP_LAST + 1] = SECCOMP_ERRNO(ENOSYS);
        for (size_t i = 0; i < seccomp_n_recent; i++)
                verdicts[seccomp_recent[i].nr] = SECCOMP_ERRNO(EPERM);
        for (size_t i = 0; i < policy->n_allowed; i++)
                set(on, verdicts, policy->allowed[i], SECCOMP_PASS);
        for (size_t i = 0; i < policy->n_agent_only; i++)
                set(on, verdicts, policy->agent_only[i], SECCOMP_PASS);
        for (size_t i = 0; i < policy->n_absent; i++)
                set(on, verdicts, policy->absent[i], SECCOMP_ERRNO(ENOSYS));
        for (uint32_t i = 0; i < policy->n_rules; i++)
                for (size_t j = 0; j < SECCOMP_NAMES_MAX && policy->rules[i].names[j]; j++)
                        set(on, verdicts, policy->rules[i].names[j], RULE_BASE + i);
        if (policy->base)
                read_base(on, policy->base, verdicts);
}

/* --- the filter --- */

/* The last range extends to the largest number, and so contains the x32 interface, whose numbers are
 * those of x86-64 with bit 30 set. */
static void make(struct prog *p, const struct processor *on)
{
        static uint32_t verdicts[SECCOMP_LAST + 2];
        static struct range ranges[SECCOMP_LAST + 2];
        const struct seccomp_rule *rules = p->policy->rules;
        size_t n = 0, targets[2];

        read_table(on, p->policy, verdicts);
        if (p->policy->n_rules > ARRAY_SIZE(p->blocks))
                die("too many", "rules");
        for (size_t i = 0; i < p->policy->n_rules; i++)
                p->blocks[i] =
                        emit_clauses(p, (struct clauses){
                                                .rule = &rules[i],
                                                .end = rules[i].n_clauses,
                                                .held = NOTHING,
                                                .tail = emit_return(p, rules[i].otherwise) });
        for (uint32_t nr = 0; nr <= SECCOMP_LAST + 1; nr++)
                if (nr == 0 || verdicts[nr] != verdicts[nr - 1])
                        ranges[n++] = (struct range){ nr, verdicts[nr] };
        (void) emit_tree(p, ranges, n);
        (void) emit_load(p, offsetof(struct seccomp_data, nr));
        targets[0] = p->n - 1;
        targets[1] = emit_return(p, SECCOMP_ERRNO(ENOSYS));
        (void) emit_branch(p, BPF_JEQ, on->audit, targets);
        (void) emit_load(p, offsetof(struct seccomp_data, arch));
}

static void print(const struct prog *p, const char *name)
{
        (void) printf("\nconst struct sock_filter %s[] = {\n", name);
        for (size_t i = p->n; i-- > 0;)
                (void) printf("        { 0x%02x, %u, %u, 0x%08x },\n", p->code[i].code,
                              p->code[i].jt, p->code[i].jf, p->code[i].k);
        (void) printf("};\n\nconst size_t %s_n = %zu;\n", name, p->n);
}

int main(int argc, char **argv)
{
        static struct prog sandbox = { .policy = &seccomp_sandbox_policy };
        static struct prog warden = { .policy = &seccomp_warden_policy };
        size_t at = 0;

        while (argc == 2 && at < ARRAY_SIZE(processors)
               && strcmp(argv[1], processors[at].name) != 0)
                at++;
        if (argc != 2 || at == ARRAY_SIZE(processors))
                die("no filter for this processor", argc == 2 ? argv[1] : "?");
        make(&sandbox, &processors[at]);
        make(&warden, &processors[at]);
        (void) printf("/* Made by seccomp-gen. */\n#include \"plan/seccomp.h\"\n");
        print(&sandbox, "seccomp_filter");
        print(&warden, "seccomp_warden_filter");
        return fflush(stdout) == 0 ? 0 : 1;
}
