/* SPDX-License-Identifier: Apache-2.0 */

/* What all sandboxes would take from one number or one memory of the host: 122. */

#include "probe.h"

#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#endif

static long io_context(void)
{
        aio_context_t context = 0;

        return outcome(syscall(SYS_io_setup, 1, &context));
}

static long set_option(int option, const void *value, size_t n)
{
        const int on = 1, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0)
                return outcome(-1);
        return outcome(setsockopt(fd, SOL_SOCKET, option, value, (socklen_t) n));
}

static const struct sock_filter all = { BPF_RET | BPF_K, 0, 0, 0xffff };

static long socket_filter(void)
{
        const struct sock_fprog program = { 1, (struct sock_filter *) (uintptr_t) &all };

        return set_option(SO_ATTACH_FILTER, &program, sizeof(program));
}

static long group_filter(void)
{
        const struct sock_fprog program = { 1, (struct sock_filter *) (uintptr_t) &all };

        return set_option(SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program));
}

static long lock_filter(void)
{
        const int on = 1;

        return set_option(SO_LOCK_FILTER, &on, sizeof(on));
}

static long merge_all(void)
{
        const long r = outcome(prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0));

        return r < 0 ? r : outcome(prctl(PR_SET_MEMORY_MERGE, 0, 0, 0, 0));
}

static long merge_some(void)
{
        void *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return p == MAP_FAILED ? outcome(-1) : outcome(madvise(p, 65536, MADV_MERGEABLE));
}

static const struct probe probes[] = {
        { 122, "io_setup", io_context, OUTSIDE, { ENOSYS } },
        { 122, "socket-filter", socket_filter, OUTSIDE, { EPERM } },
        { 122, "reuseport-filter", group_filter, OUTSIDE, { EPERM } },
        { 122, "lock-filter", lock_filter, OUTSIDE, { EPERM } },
        { 122, "merge-all", merge_all, OUTSIDE, { EINVAL } },
        { 122, "merge-some", merge_some, OUTSIDE, { EINVAL } },
};

const struct probe_theme theme_tables = THEME(probes);
