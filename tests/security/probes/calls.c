/* SPDX-License-Identifier: Apache-2.0 */

/* Large and privileged parts of the kernel: 16, 46 to 48, 67. */

#include "probe.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/fanotify.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/quota.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static long bpf_map(void)
{
        union bpf_attr attr = {
                .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
        };

        return outcome(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

/* The least that is a program: r0 = 0; exit. */
static long bpf_program(void)
{
        static const struct bpf_insn code[] = {
                { .code = BPF_ALU64 | BPF_MOV | BPF_K },
                { .code = BPF_JMP | BPF_EXIT },
        };
        union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
                                .insn_cnt = COUNT(code),
                                .insns = (uintptr_t) code,
                                .license = (uintptr_t) "GPL" };

        return outcome(syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr)));
}

static long perf(void)
{
        struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                        .size = sizeof(attr),
                                        .config = PERF_COUNT_SW_CPU_CLOCK };

        return outcome(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

static long page_faults(void)
{
        return outcome(syscall(SYS_userfaultfd, O_CLOEXEC));
}

static long page_faults_user_only(void)
{
        return outcome(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
}

static long io_ring(void)
{
        struct io_uring_params p = { 0 };

        return outcome(syscall(SYS_io_uring_setup, 4, &p));
}

static long io_ring_enter(void)
{
        struct io_uring_params p = { 0 };
        const long fd = syscall(SYS_io_uring_setup, 4, &p);

        return outcome(syscall(SYS_io_uring_enter, fd < 0 ? 0 : fd, 0, 0, 0, NULL, 0));
}

static long io_ring_register(void)
{
        struct io_uring_params p = { 0 };
        const long fd = syscall(SYS_io_uring_setup, 4, &p);

        return outcome(syscall(SYS_io_uring_register, fd < 0 ? 0 : fd, IORING_REGISTER_PERSONALITY,
                               NULL, 0));
}

/* --- keys --- */

static long key_add(void)
{
        return outcome(syscall(SYS_add_key, "user", "probe", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

static long key_list(void)
{
        char text[512];

        return outcome(
                syscall(SYS_keyctl, KEYCTL_READ, KEY_SPEC_SESSION_KEYRING, text, sizeof(text)));
}

static long key_search(const char *name)
{
        return outcome(syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user", name, 0));
}

static long key_of_machine(void)
{
        const long r = key_search("hutch-security-witness");

        return r == -ENOKEY ? 0 : r; /* the call itself has been answered */
}

/* May run a program of the host. */
static long key_request(void)
{
        const long r = outcome(syscall(SYS_request_key, "user", "probe-none", NULL, 0));

        return r == -ENOKEY ? 0 : r;
}

/* --- the host as a whole: never outside --- */

static long kexec(void)
{
        return outcome(syscall(SYS_kexec_load, 0, 0, NULL, 0));
}

static long kexec_file(void)
{
        return outcome(syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0));
}

static long module(void)
{
        return outcome(syscall(SYS_init_module, "", 0, ""));
}

static long module_file(void)
{
        return outcome(syscall(SYS_finit_module, 0, "", 0));
}

static long module_remove(void)
{
        return outcome(syscall(SYS_delete_module, "none-such", 0));
}

static long reboot_machine(void)
{
        return outcome(syscall(SYS_reboot, 0xfee1dead, 672274793, 0 /* CAD off */, NULL));
}

static long set_clock(void)
{
        struct timespec t;

        if (clock_gettime(CLOCK_REALTIME, &t) < 0)
                return outcome(-1);
        return outcome(clock_settime(CLOCK_REALTIME, &t));
}

static long set_clock_old(void)
{
        struct timeval t;

        if (gettimeofday(&t, NULL) < 0)
                return outcome(-1);
        return outcome(settimeofday(&t, NULL));
}

static long adjust_clock(void)
{
        struct timex t = { .modes = ADJ_STATUS };

        return outcome(clock_adjtime(CLOCK_REALTIME, &t));
}

static long adjust_clock_old(void)
{
        struct timex t = { .modes = ADJ_STATUS };

        return outcome(adjtimex(&t));
}

static long accounting(void)
{
        return outcome(acct("/tmp/none-such"));
}

static long swap_on(void)
{
        return outcome(syscall(SYS_swapon, "/tmp/none-such", 0));
}

static long swap_off(void)
{
        return outcome(syscall(SYS_swapoff, "/tmp/none-such"));
}

static long quota(void)
{
        return outcome(syscall(SYS_quotactl, QCMD(Q_SYNC, USRQUOTA), NULL, 0, NULL));
}

static long host_name(void)
{
        return outcome(sethostname("evil", 4));
}

static long domain_name(void)
{
        return outcome(setdomainname("evil", 4));
}

static long hang_up(void)
{
        return outcome(vhangup());
}

static long watch_everything(void)
{
        return outcome(syscall(SYS_fanotify_init, FAN_CLASS_CONTENT, O_RDONLY));
}

static long random_personality(void)
{
        return outcome(personality(ADDR_NO_RANDOMIZE));
}

static long zero_page_personality(void)
{
        return outcome(personality(MMAP_PAGE_ZERO | READ_IMPLIES_EXEC));
}

/* Calls that exist as numbers only, on some processors: any refusal but success. */
static long forgotten_calls(void)
{
        static const long numbers[] = {
#ifdef __x86_64__
                SYS_nfsservctl, SYS_lookup_dcookie, SYS_uselib,     SYS_create_module,
                SYS__sysctl,    SYS_ustat,          SYS_sysfs,      SYS_get_kernel_syms,
                SYS_getpmsg,    SYS_security,       SYS_vserver,    SYS_tuxcall,
                SYS_modify_ldt,
#else
                SYS_nfsservctl, SYS_lookup_dcookie,
#endif
                SYS_mbind,      SYS_migrate_pages,  SYS_move_pages, SYS_set_mempolicy,
        };

        for (size_t i = 0; i < COUNT(numbers); i++)
                if (syscall(numbers[i], 0, 0, 0, 0, 0, 0) >= 0) {
                        note("call %ld ", numbers[i]);
                        return 0;
                } else if (errno != EPERM && errno != ENOSYS) {
                        note("call %ld ", numbers[i]);
                        return outcome(-1);
                }
        return -EPERM;
}

static long ports(void)
{
#ifdef __x86_64__
        if (syscall(SYS_iopl, 3) == 0)
                return 0;
        return outcome(syscall(SYS_ioperm, 0x80, 1, 1));
#else
        return lacks("a processor with ports");
#endif
}

/* --- 47, 48 --- */

/* Handle of the root of an ext4: inode 2. */
static long open_by_handle(void)
{
        struct {
                struct file_handle h;
                uint32_t bytes[2];
        } h = { { .handle_bytes = 8, .handle_type = 1 }, { 2, 0 } };
        const int at = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return at < 0 ? outcome(-1) : outcome(open_by_handle_at(at, &h.h, O_RDONLY | O_CLOEXEC));
}

static long open_by_own_handle(void)
{
        struct {
                struct file_handle h;
                char bytes[MAX_HANDLE_SZ];
        } h = { { .handle_bytes = MAX_HANDLE_SZ }, { 0 } };
        int mount_id;
        const int at = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        (void) name_to_handle_at(at, "", &h.h, &mount_id, AT_EMPTY_PATH);
        return outcome(open_by_handle_at(at, &h.h, O_RDONLY | O_CLOEXEC));
}

static long name_to_handle(void)
{
        struct {
                struct file_handle h;
                char bytes[MAX_HANDLE_SZ];
        } h = { { .handle_bytes = MAX_HANDLE_SZ }, { 0 } };
        int mount_id;

        return outcome(name_to_handle_at(AT_FDCWD, "/tmp", &h.h, &mount_id, 0));
}

static const struct probe probes[] = {
        { 16, "swapon", swap_on, INSIDE, { EPERM } },
        { 16, "swapoff", swap_off, INSIDE, { EPERM } },
        { 46, "bpf-map", bpf_map, OUTSIDE, { EPERM } },
        { 46, "bpf-program", bpf_program, OUTSIDE, { EPERM } },
        { 46, "perf_event_open", perf, OUTSIDE, { EPERM } },
        { 46, "userfaultfd", page_faults, OUTSIDE, { EPERM } },
        { 46, "userfaultfd-user", page_faults_user_only, OUTSIDE, { EPERM } },
        { 46, "io_uring_setup", io_ring, OUTSIDE, { EPERM } },
        { 46, "io_uring_enter", io_ring_enter, OUTSIDE, { EPERM } },
        { 46, "io_uring_register", io_ring_register, OUTSIDE, { EPERM } },
        { 46, "add_key", key_add, OUTSIDE, { EPERM } },
        { 46, "keyctl", key_list, OUTSIDE, { EPERM } },
        { 46, "request_key", key_request, OUTSIDE, { EPERM } },
        { 46, "kexec_load", kexec, INSIDE, { EPERM } },
        { 46, "kexec_file_load", kexec_file, INSIDE, { EPERM } },
        { 46, "init_module", module, INSIDE, { EPERM } },
        { 46, "finit_module", module_file, INSIDE, { EPERM } },
        { 46, "delete_module", module_remove, INSIDE, { EPERM } },
        { 46, "reboot", reboot_machine, INSIDE, { EPERM } },
        { 46, "clock_settime", set_clock, INSIDE, { EPERM } },
        { 46, "settimeofday", set_clock_old, INSIDE, { EPERM } },
        { 46, "clock_adjtime", adjust_clock, INSIDE, { EPERM } },
        { 46, "adjtimex", adjust_clock_old, INSIDE, { EPERM } },
        { 46, "acct", accounting, INSIDE, { EPERM } },
        { 46, "quotactl", quota, OUTSIDE, { EPERM } },
        { 46, "sethostname", host_name, OUTSIDE, { EPERM } },
        { 46, "setdomainname", domain_name, OUTSIDE, { EPERM } },
        { 46, "vhangup", hang_up, OUTSIDE, { EPERM } },
        { 46, "fanotify", watch_everything, OUTSIDE, { EPERM } },
        { 46, "personality-no-randomize", random_personality, OUTSIDE, { EPERM } },
        { 46, "personality-zero-page", zero_page_personality, OUTSIDE, { EPERM } },
        { 46, "forgotten-calls", forgotten_calls, INSIDE, { EPERM } },
        { 46, "iopl-ioperm", ports, OUTSIDE, { EPERM } },
        { 47, "open_by_handle_at", open_by_handle, INSIDE, { EPERM } },
        { 47, "open_by_own_handle", open_by_own_handle, OUTSIDE, { EPERM } },
        { 48, "name_to_handle_at", name_to_handle, OUTSIDE, { EOPNOTSUPP } },
        { 67, "key-of-machine", key_of_machine, OUTSIDE, { EPERM } },
        { 67, "session-keyring", key_list, OUTSIDE, { EPERM } },
};

const struct probe_theme theme_calls = THEME(probes);
