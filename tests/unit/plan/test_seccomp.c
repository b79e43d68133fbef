/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The filters are run here, in an interpreter, over every number and many arguments, and compared with
 * their tables read naively and with libseccomp's filters of the same rules; then they are loaded.
 */

#include "plan/seccomp.h"

#include <linux/audit.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "plan/seccomp_policy.h"
#include "tests/lib/check.h"

#define X32         0x40000000
#define NOT_JUDGED  (SECCOMP_RET_ERRNO | 4000U) /* what libseccomp returns when no rule applies */
#define STEPS_MAX   24                          /* arch, number, and the way to a verdict */
#define SAMPLES_MAX 512

#if defined(__x86_64__)
#define ARCH       AUDIT_ARCH_X86_64
#define OTHER_ARCH AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define ARCH       AUDIT_ARCH_AARCH64
#define OTHER_ARCH AUDIT_ARCH_ARM
#else
#define ARCH       AUDIT_ARCH_RISCV64
#define OTHER_ARCH AUDIT_ARCH_RISCV32
#endif

/* --- an interpreter of classic BPF, as far as seccomp filters go --- */

struct bpf {
        const struct sock_filter *code;
        size_t n;
        unsigned steps;
};

static bool jump_taken(const struct sock_filter *i, uint32_t a)
{
        switch (BPF_OP(i->code)) {
        case BPF_JEQ:
                return a == i->k;
        case BPF_JGT:
                return a > i->k;
        case BPF_JGE:
                return a >= i->k;
        case BPF_JSET:
                return (a & i->k) != 0;
        default:
                fail_msg("jump %#x", i->code);
                return false;
        }
}

static uint32_t run(struct bpf *m, const struct seccomp_data *data)
{
        uint32_t a = 0;
        size_t pc = 0;

        for (m->steps = 1;; m->steps++) {
                const struct sock_filter *i = &m->code[pc];

                check_true(pc < m->n);
                pc++;
                if (i->code == (BPF_LD | BPF_W | BPF_ABS)) {
                        check_true(i->k <= sizeof(*data) - 4 && i->k % 4 == 0);
                        memcpy(&a, (const char *) data + i->k, sizeof(a));
                } else if (i->code == (BPF_ALU | BPF_AND | BPF_K)) {
                        a &= i->k;
                } else if (i->code == (BPF_RET | BPF_K)) {
                        return i->k;
                } else if (i->code == (BPF_JMP | BPF_JA)) {
                        pc += i->k;
                } else {
                        pc += jump_taken(i, a) ? i->jt : i->jf;
                }
        }
}

/* --- the table, read naively --- */

static int number(const char *name)
{
        for (size_t i = 0; i < seccomp_n_recent; i++)
                if (strcmp(seccomp_recent[i].name, name) == 0)
                        return seccomp_recent[i].nr;
        return seccomp_syscall_resolve_name(name);
}

static bool in(const char *const *names, size_t n, int nr)
{
        for (size_t i = 0; i < n && names[i]; i++)
                if (number(names[i]) == nr)
                        return true;
        return false;
}

static const struct seccomp_rule *rule_of(const struct seccomp_policy *p, int nr)
{
        for (size_t i = 0; i < p->n_rules; i++)
                if (in(p->rules[i].names, SECCOMP_NAMES_MAX, nr))
                        return &p->rules[i];
        return NULL;
}

static bool is_named(int nr)
{
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
        bool named = name != NULL;

        free(name);
        for (size_t i = 0; i < seccomp_n_recent; i++)
                named |= seccomp_recent[i].nr == nr;
        return named;
}

static bool may_pass(const struct seccomp_rule *rule)
{
        bool found = rule->otherwise == SECCOMP_PASS;

        for (unsigned i = 0; i < rule->n_clauses; i++)
                found |= rule->clauses[i].verdict == SECCOMP_PASS;
        return found;
}

/* Of a call without a rule. */
static uint32_t plain_verdict(const struct seccomp_policy *p, int nr)
{
        const struct seccomp_rule *rule;

        if (nr < 0 || nr > SECCOMP_LAST || !is_named(nr) || in(p->absent, p->n_absent, nr))
                return SECCOMP_ERRNO(ENOSYS);
        if (in(p->allowed, p->n_allowed, nr) || in(p->agent_only, p->n_agent_only, nr))
                return SECCOMP_PASS;
        if (!p->base)
                return SECCOMP_ERRNO(EPERM);
        rule = rule_of(p->base, nr);
        return rule && may_pass(rule) ? SECCOMP_PASS : plain_verdict(p->base, nr);
}

/* The clause that decides, or NULL for `otherwise`. */
static const struct seccomp_clause *deciding(const struct seccomp_rule *rule,
                                             const struct seccomp_data *data)
{
        for (unsigned i = 0; i < rule->n_clauses; i++) {
                const struct seccomp_clause *c = &rule->clauses[i];
                unsigned held = 0;

                for (unsigned j = 0; j < c->n; j++) {
                        const unsigned arg = c->all[j].arg;
                        const uint64_t v = data->args[arg % SECCOMP_ARGS];

                        held += ((uint32_t) (arg < SECCOMP_ARGS ? v : v >> 32) & c->all[j].mask)
                                == c->all[j].value;
                }
                if (held == c->n)
                        return c;
        }
        return NULL;
}

/* --- libseccomp's filter of the same rules --- */

/* libseccomp knows no order: a clause that only applies where more exact ones before it do not is
 * left out, and `otherwise` is what it does not judge. */
static bool is_unordered(const struct seccomp_rule *rule, const struct seccomp_clause *c)
{
        for (unsigned j = 0; j < c->n; j++)
                if (c->all[j].arg
                    >= SECCOMP_ARGS) /* one condition for an argument is all it takes */
                        return false;
        for (unsigned i = 0; i < rule->n_clauses; i++)
                if (rule->clauses[i].n > c->n && rule->clauses[i].all[0].arg == c->all[0].arg
                    && rule->clauses[i].all[0].value == c->all[0].value)
                        return false;
        return true;
}

static uint32_t oracle_action(uint32_t verdict)
{
        return verdict == SECCOMP_PASS ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(verdict & 0xffff);
}

static void oracle_add_rule(scmp_filter_ctx ctx, int nr, const struct seccomp_rule *rule)
{
        for (unsigned i = 0; i < rule->n_clauses; i++) {
                const struct seccomp_clause *c = &rule->clauses[i];
                struct scmp_arg_cmp cmp[SECCOMP_CONDS_MAX];

                if (!is_unordered(rule, c))
                        continue;
                for (unsigned j = 0; j < c->n; j++)
                        cmp[j] = SCMP_CMP(c->all[j].arg, SCMP_CMP_MASKED_EQ, c->all[j].mask,
                                          c->all[j].value);
                check_i64_eq(seccomp_rule_add_array(ctx, oracle_action(c->verdict), nr, c->n, cmp),
                             0);
        }
}

static struct sock_filter *oracle_export(scmp_filter_ctx ctx, size_t *ret_n)
{
        int fd = memfd_create("oracle", MFD_CLOEXEC);
        struct sock_filter *code;
        off_t size;

        check_true(fd >= 0);
        check_i64_eq(seccomp_export_bpf(ctx, fd), 0);
        size = lseek(fd, 0, SEEK_END);
        check_true(size > 0);
        code = xcalloc((size_t) size / sizeof(*code), sizeof(*code));
        check_i64_eq(pread(fd, code, (size_t) size, 0), size);
        (void) close(fd);
        *ret_n = (size_t) size / sizeof(*code);
        return code;
}

static struct sock_filter *oracle_new(const struct seccomp_policy *p, size_t *ret_n)
{
        scmp_filter_ctx ctx = seccomp_init(NOT_JUDGED);
        struct sock_filter *code;

        check_true(ctx != NULL);
        check_i64_eq(seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS)), 0);
        for (int nr = 0; nr <= SECCOMP_LAST; nr++) {
                const struct seccomp_rule *rule = rule_of(p, nr);

                if (rule)
                        oracle_add_rule(ctx, nr, rule);
                else if (is_named(nr))
                        check_i64_eq(seccomp_rule_add(ctx, oracle_action(plain_verdict(p, nr)), nr,
                                                      0),
                                     0);
        }
        code = oracle_export(ctx, ret_n);
        seccomp_release(ctx);
        return code;
}

/* --- samples --- */

static size_t add_sample(uint64_t *samples, size_t n, uint64_t v)
{
        for (size_t i = 0; i < n; i++)
                if (samples[i] == v)
                        return n;
        check_true(n < SAMPLES_MAX);
        samples[n] = v;
        return n + 1;
}

/* Around every value of the table, and the same with a bit where the kernel does not look. */
static size_t make_samples(const struct seccomp_rule *rule, uint64_t *ret)
{
        size_t n = 0;

        for (unsigned i = 0; i < rule->n_clauses; i++)
                for (unsigned j = 0; j < rule->clauses[i].n; j++) {
                        uint64_t v = rule->clauses[i].all[j].value;
                        uint64_t mask = rule->clauses[i].all[j].mask;

                        n = add_sample(ret, n, v);
                        n = add_sample(ret, n, v ^ 1);
                        n = add_sample(ret, n, v | (1ULL << 32));
                        n = add_sample(ret, n, v | (1ULL << 63));
                        n = add_sample(ret, n, (uint32_t) ~mask | v);
                        for (unsigned bit = 0; bit < 32; bit++)
                                if (mask != UINT32_MAX && mask >> bit & 1)
                                        n = add_sample(ret, n, 1ULL << bit);
                }
        n = add_sample(ret, n, 0);
        return add_sample(ret, n, UINT64_MAX);
}

struct worlds {
        const struct seccomp_policy *policy;
        struct bpf ours, oracle;
        unsigned longest;
};

static void compare(struct worlds *w, const struct seccomp_data *data,
                    const struct seccomp_rule *rule)
{
        const struct seccomp_clause *c = rule ? deciding(rule, data) : NULL;
        uint32_t should = !rule ? plain_verdict(w->policy, data->nr)
                          : c   ? c->verdict
                                : rule->otherwise;
        uint32_t is = run(&w->ours, data), theirs = run(&w->oracle, data);

        if (is != should)
                fail_msg("%d(%#llx, %#llx, %#llx): %#x, should be %#x", data->nr,
                         (unsigned long long) data->args[0], (unsigned long long) data->args[1],
                         (unsigned long long) data->args[2], is, should);
        w->longest = MAX_OF(w->longest, w->ours.steps);
        if (theirs == NOT_JUDGED)
                check_true(rule ? !c || !is_unordered(rule, c) : !is_named(data->nr));
        else
                check_u64_eq(theirs, should);
}

static void compare_arguments(struct worlds *w, int nr, const struct seccomp_rule *rule)
{
        static const uint64_t between[] = { 1, 3, 4, 6, 10, 0x80801, 1ULL << 34 | 1 };
        static uint64_t samples[SAMPLES_MAX];
        struct seccomp_data data = { .nr = nr, .arch = ARCH };
        size_t n = make_samples(rule, samples);

        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < n; j++) {
                        data.args[0] = samples[i];
                        data.args[1] = data.args[2] = samples[j];
                        compare(w, &data, rule);
                        for (size_t k = 0; k < ARRAY_SIZE(between); k++) {
                                data.args[1] = between[k];
                                compare(w, &data, rule);
                        }
                }
}

static const struct filter_case {
        const char *name;
        const struct seccomp_policy *policy;
        const struct sock_filter *filter;
        const size_t *n;
} filters[] = {
        { "sandbox", &seccomp_sandbox_policy, seccomp_filter, &seccomp_filter_n },
        { "warden", &seccomp_warden_policy, seccomp_warden_filter, &seccomp_warden_filter_n },
};

static void check_filter(const struct filter_case *c)
{
        const struct seccomp_policy *p = c->policy;
        scoped(freep) struct sock_filter *oracle = NULL;
        struct worlds w = { .policy = p, .ours = { c->filter, *c->n, 0 } };
        unsigned rules = 0;

        oracle = oracle_new(p, &w.oracle.n);
        w.oracle.code = oracle;
        for (int nr = 0; nr <= SECCOMP_LAST + 64; nr++) {
                const struct seccomp_rule *rule = rule_of(p, nr);
                struct seccomp_data data = { .nr = nr, .arch = ARCH };

                compare(&w, &data, rule);
                memset(data.args, 0xff, sizeof(data.args));
                compare(&w, &data, rule);
                if (rule) {
                        compare_arguments(&w, nr, rule);
                        rules++;
                }
        }
        check_true(rules >= p->n_rules);
        check_true(w.longest <= STEPS_MAX);
        print_message("# %s: %zu instructions, at most %u steps; libseccomp: %zu instructions\n",
                      c->name, w.ours.n, w.longest, w.oracle.n);
}

static void test_the_filters_are_the_tables(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
                check_case(filters[i].name);
                check_filter(&filters[i]);
        }
}

/* --- the filter of the warden, which sandboxes inherit --- */

static void check_superset(const struct seccomp_data *data)
{
        struct bpf inner = { seccomp_filter, seccomp_filter_n, 0 };
        struct bpf outer = { seccomp_warden_filter, seccomp_warden_filter_n, 0 };

        if (run(&inner, data) == SECCOMP_RET_ALLOW && run(&outer, data) != SECCOMP_RET_ALLOW)
                fail_msg("%d(%#llx, %#llx, %#llx): only the warden's filter refuses it", data->nr,
                         (unsigned long long) data->args[0], (unsigned long long) data->args[1],
                         (unsigned long long) data->args[2]);
}

static void test_the_warden_takes_nothing_from_sandboxes(void **state)
{
        static uint64_t samples[SAMPLES_MAX];

        (void) state;
        for (int nr = 0; nr <= SECCOMP_LAST; nr++) {
                const struct seccomp_rule *rule = rule_of(&seccomp_sandbox_policy, nr);
                const size_t n = rule ? make_samples(rule, samples) : 0;
                struct seccomp_data data = { .nr = nr, .arch = ARCH };

                check_superset(&data);
                for (size_t i = 0; i < n * n * n; i++) {
                        data.args[0] = samples[i % n];
                        data.args[1] = samples[i / n % n];
                        data.args[2] = samples[i / n / n];
                        check_superset(&data);
                }
        }
}

static void test_other_interfaces_do_not_exist(void **state)
{
        const int odd[] = { -1, -2, INT32_MIN, INT32_MAX, SECCOMP_LAST + 1, 10000 };

        (void) state;
        for (size_t f = 0; f < ARRAY_SIZE(filters); f++) {
                struct bpf m = { filters[f].filter, *filters[f].n, 0 };

                for (int nr = 0; nr < 1024; nr++) {
                        struct seccomp_data other = { .nr = nr, .arch = OTHER_ARCH };
                        struct seccomp_data x32 = { .nr = nr | X32, .arch = ARCH };

                        check_u64_eq(run(&m, &other), SECCOMP_ERRNO(ENOSYS));
                        check_u64_eq(run(&m, &x32), SECCOMP_ERRNO(ENOSYS));
                }
                for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
                        struct seccomp_data data = { .nr = odd[i], .arch = ARCH };

                        check_u64_eq(run(&m, &data), SECCOMP_ERRNO(ENOSYS));
                }
        }
}

/* --- what the table must say, whoever edits it --- */

static void check_refused(const struct filter_case *f, const char *const *names, size_t n)
{
        struct bpf m = { f->filter, *f->n, 0 };

        for (size_t i = 0; i < n; i++) {
                struct seccomp_data data = { .nr = number(names[i]), .arch = ARCH };

                check_case(names[i]);
                check_true(data.nr != __NR_SCMP_ERROR);
                check_u64_eq(run(&m, &data) & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
        }
}

static void test_what_must_never_pass(void **state)
{
        static const char *const names[] = {
                "acct",
                "add_key",
                "adjtimex",
                "bpf",
                "clock_adjtime",
                "clock_settime",
                "delete_module",
                "fanotify_init",
                "finit_module",
                "fsconfig",
                "fsmount",
                "fsopen",
                "fspick",
                "init_module",
                "io_uring_enter",
                "io_uring_register",
                "io_uring_setup",
                "ioperm",
                "iopl",
                "kcmp",
                "kexec_file_load",
                "kexec_load",
                "keyctl",
                "lookup_dcookie",
                "mount",
                "mount_setattr",
                "move_mount",
                "move_pages",
                "name_to_handle_at",
                "nfsservctl",
                "open_by_handle_at",
                "open_tree",
                "open_tree_attr",
                "perf_event_open",
                "pidfd_getfd",
                "pivot_root",
                "process_madvise",
                "quotactl",
                "quotactl_fd",
                "reboot",
                "request_key",
                "sethostname",
                "setdomainname",
                "setns",
                "settimeofday",
                "swapoff",
                "swapon",
                "syslog",
                "umount2",
                "userfaultfd",
                "vhangup",
        };

        (void) state;
        check_refused(&filters[0], names, ARRAY_SIZE(names));
}

static void test_what_the_warden_must_never_do(void **state)
{
        static const char *const names[] = {
                "acct",
                "add_key",
                "adjtimex",
                "bpf",
                "clock_adjtime",
                "clock_settime",
                "delete_module",
                "fanotify_init",
                "finit_module",
                "init_module",
                "io_uring_enter",
                "io_uring_register",
                "io_uring_setup",
                "ioperm",
                "iopl",
                "kcmp",
                "kexec_file_load",
                "kexec_load",
                "keyctl",
                "lookup_dcookie",
                "mbind",
                "migrate_pages",
                "mount",
                "move_pages",
                "name_to_handle_at",
                "nfsservctl",
                "open_by_handle_at",
                "perf_event_open",
                "pidfd_getfd",
                "process_madvise",
                "reboot",
                "request_key",
                "settimeofday",
                "swapoff",
                "swapon",
                "syslog",
                "userfaultfd",
                "vhangup",
        };

        (void) state;
        check_refused(&filters[1], names, ARRAY_SIZE(names));
}

/* An error of the kernel would look the same from outside. */
static void test_pages_are_not_merged(void **state)
{
        struct bpf m = { seccomp_filter, seccomp_filter_n, 0 };
        struct seccomp_data data = { .nr = number("prctl"), .arch = ARCH };

        (void) state;
        data.args[0] = 67; /* PR_SET_MEMORY_MERGE */
        check_u64_eq(run(&m, &data), SECCOMP_ERRNO(EINVAL));
        data.args[0] = 68; /* PR_GET_MEMORY_MERGE */
        check_u64_eq(run(&m, &data), SECCOMP_PASS);
        data.nr = number("madvise");
        data.args[2] = 12; /* MADV_MERGEABLE */
        check_u64_eq(run(&m, &data), SECCOMP_ERRNO(EINVAL));
        data.args[2] = 4; /* MADV_DONTNEED */
        check_u64_eq(run(&m, &data), SECCOMP_PASS);
}

/* --- loaded for real --- */

struct attempt {
        const char *name;
        long nr, args[4];
        int error; /* 0: it works */
};

#define HIGH (1L << 32)

static const struct attempt attempts[] = {
        { "getpid", SYS_getpid, { 0 }, 0 },
        { "unix socket", SYS_socket, { AF_UNIX, SOCK_STREAM }, 0 },
        { "vsock", SYS_socket, { AF_VSOCK, SOCK_STREAM }, EAFNOSUPPORT },
        { "kernel crypto", SYS_socket, { AF_ALG, SOCK_SEQPACKET }, EAFNOSUPPORT },
        { "routes", SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE }, 0 },
        { "audit", SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_AUDIT }, EINVAL },
        { "nf_tables", SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER }, EPROTONOSUPPORT },
        { "SCTP", SYS_socket, { AF_INET, SOCK_STREAM, 132 }, EPROTONOSUPPORT },
        { "SCTP by its type", SYS_socket, { AF_INET, SOCK_SEQPACKET, 0 }, EPROTONOSUPPORT },
        { "DCCP by its type", SYS_socket, { AF_INET6, SOCK_DCCP, 0 }, EPROTONOSUPPORT },
        { "packets", SYS_socket, { AF_INET, SOCK_PACKET | SOCK_CLOEXEC, 0 }, EPROTONOSUPPORT },
        { "datagrams", SYS_socket, { AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0 }, 0 },
        { "new user namespace", SYS_unshare, { CLONE_NEWUSER }, EPERM },
        { "unshare descriptors", SYS_unshare, { CLONE_FILES }, 0 },
        { "clone with new namespace", SYS_clone, { CLONE_NEWUSER | SIGCHLD }, EPERM },
        { "the same, and a bit above", SYS_clone, { CLONE_NEWUSER | SIGCHLD | HIGH }, EPERM },
        { "clone3, which the agent uses", SYS_clone3, { 0, 0 }, EINVAL },
        { "TIOCSTI", SYS_ioctl, { 0, TIOCSTI, 0 }, EPERM },
        { "TIOCSTI with a bit above", SYS_ioctl, { 0, TIOCSTI | HIGH, 0 }, EPERM },
        { "TIOCLINUX with a bit above", SYS_ioctl, { 0, TIOCLINUX | HIGH, 0 }, EPERM },
        { "signal to the agent", SYS_kill, { 1, 0 }, EPERM },
        { "limits of the agent", SYS_prlimit64, { 1, RLIMIT_NOFILE, 0, 0 }, EPERM },
        { "own limits", SYS_prlimit64, { 0, RLIMIT_NOFILE, 0, 0 }, 0 },
        { "size of core dumps", SYS_prlimit64, { 0, RLIMIT_CORE, 0, 0 }, 0 },
        { "the same, set from nowhere", SYS_prlimit64, { 0, RLIMIT_CORE, HIGH, 0 }, 0 },
        { "priority of all", SYS_setpriority, { PRIO_USER, 0, 19 }, EPERM },
        { "own priority", SYS_setpriority, { PRIO_PROCESS, 0, 19 }, 0 },
        { "address randomisation", SYS_personality, { 0x0040000 }, EPERM },
        { "which personality", SYS_personality, { 0xffffffff }, 0 },
        { "keys", SYS_keyctl, { 0 }, EPERM },
        { "mount", SYS_mount, { 0 }, EPERM },
        { "io_uring", SYS_io_uring_setup, { 1, 0 }, EPERM },
        { "asynchronous I/O", SYS_io_setup, { 1, 0 }, ENOSYS },
        { "the same, without a context", SYS_io_destroy, { 0 }, ENOSYS },
        { "socket filter", SYS_setsockopt, { 0, SOL_SOCKET, SO_ATTACH_FILTER, 0 }, EPERM },
        { "the same, and bits above",
          SYS_setsockopt,
          { 0, SOL_SOCKET | HIGH, SO_ATTACH_FILTER | HIGH, 0 },
          EPERM },
        { "socket program", SYS_setsockopt, { 0, SOL_SOCKET, SO_ATTACH_BPF, 0 }, EPERM },
        { "filter of a group",
          SYS_setsockopt,
          { 0, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, 0 },
          EPERM },
        { "program of a group",
          SYS_setsockopt,
          { 0, SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF, 0 },
          EPERM },
        { "locked filter", SYS_setsockopt, { 0, SOL_SOCKET, SO_LOCK_FILTER, 0 }, EPERM },
        { "other level", SYS_setsockopt, { -1, SOL_SOCKET + 1, SO_ATTACH_FILTER, 0 }, EBADF },
        { "other option", SYS_setsockopt, { -1, SOL_SOCKET, SO_REUSEADDR, 0 }, EBADF },
        { "number of the future", 10000, { 0 }, ENOSYS },
#if defined(__x86_64__)
        { "whiteout", SYS_mknod, { (long) (uintptr_t) "/tmp/w", S_IFCHR, 0 }, EPERM },
        { "x32", SYS_getpid | X32, { 0 }, ENOSYS },
#endif
};

static const struct attempt warden_attempts[] = {
        { "getpid", SYS_getpid, { 0 }, 0 },
        { "routes", SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_ROUTE }, 0 },
        { "audit", SYS_socket, { AF_NETLINK, SOCK_RAW, NETLINK_AUDIT }, EAFNOSUPPORT },
        { "kernel crypto", SYS_socket, { AF_ALG, SOCK_SEQPACKET }, EAFNOSUPPORT },
        { "clone3 that the kernel refuses", SYS_clone3, { 0, 0 }, EINVAL },
        { "a mount of nothing", SYS_move_mount, { -1, 0, -1, 0 }, EFAULT },
        { "the old mount", SYS_mount, { 0 }, EPERM },
        { "keys", SYS_keyctl, { 0 }, EPERM },
        { "bpf", SYS_bpf, { 0 }, EPERM },
        { "modules", SYS_init_module, { 0 }, EPERM },
        { "kexec", SYS_kexec_load, { 0 }, EPERM },
        { "io_uring", SYS_io_uring_setup, { 1, 0 }, EPERM },
        { "perf", SYS_perf_event_open, { 0 }, EPERM },
        { "number of the future", 10000, { 0 }, ENOSYS },
};

static const struct loaded {
        const struct filter_case *filter;
        const struct attempt *attempts;
        size_t n;
} loaded[] = {
        { &filters[0], attempts, ARRAY_SIZE(attempts) },
        { &filters[1], warden_attempts, ARRAY_SIZE(warden_attempts) },
};

static int load(const struct filter_case *f)
{
        struct sock_fprog prog = { (unsigned short) *f->n,
                                   (struct sock_filter *) (uintptr_t) f->filter };

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}

/* The number of the first attempt with another outcome, counted from 1. */
static int try_all(const struct loaded *l)
{
        if (load(l->filter) < 0)
                return 255;
        for (size_t i = 0; i < l->n; i++) {
                const struct attempt *a = &l->attempts[i];
                long r = syscall(a->nr, a->args[0], a->args[1], a->args[2], a->args[3], 0L, 0L);

                if (a->error ? r >= 0 || errno != a->error : r < 0)
                        return (int) i + 1;
        }
        return 0;
}

static int in_child(int (*fn)(const struct loaded *l), const struct loaded *l)
{
        pid_t pid = fork();
        int status;

        check_true(pid >= 0);
        if (pid == 0)
                _exit(fn(l));
        check_i64_eq(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test_loaded(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(loaded); i++) {
                int failed = in_child(try_all, &loaded[i]);

                check_true(failed >= 0 && failed < 255);
                check_case(failed > 0 ? loaded[i].attempts[failed - 1].name : "all");
                check_i64_eq(failed, 0);
        }
}

#if defined(__x86_64__)
/* getpid of i386: an int 0x80 in a 64-bit program. */
static int int80_call(const struct loaded *l)
{
        long r;

        (void) l;
        __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
        return r == -ENOSYS ? 1 : r > 0 ? 2 : 3;
}

static int int80_behind_filter(const struct loaded *l)
{
        return load(l->filter) < 0 ? 255 : int80_call(l);
}

static void test_i386_door_is_shut(void **state)
{
        (void) state;
        if (in_child(int80_call, NULL) != 2)
                skip_because("this kernel has no i386 interface");
        for (size_t i = 0; i < ARRAY_SIZE(loaded); i++)
                check_i64_eq(in_child(int80_behind_filter, &loaded[i]), 1);
}
#endif

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_filters_are_the_tables),
                cmocka_unit_test(test_the_warden_takes_nothing_from_sandboxes),
                cmocka_unit_test(test_other_interfaces_do_not_exist),
                cmocka_unit_test(test_what_must_never_pass),
                cmocka_unit_test(test_what_the_warden_must_never_do),
                cmocka_unit_test(test_pages_are_not_merged),
                cmocka_unit_test(test_loaded),
#if defined(__x86_64__)
                cmocka_unit_test(test_i386_door_is_shut),
#endif
        };

        return cmocka_run_group_tests_name("plan/seccomp", tests, NULL, NULL);
}
