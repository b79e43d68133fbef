/* SPDX-License-Identifier: Apache-2.0 */

/* Who one is: 28, 53, 54. */

#include "probe.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* What packages need; of root. */
#define FEW 0x800405fbULL

static long all_capabilities(void)
{
        struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
        struct __user_cap_data_struct data[2] = { { ~0U, ~0U, ~0U }, { ~0U, ~0U, ~0U } };

        return outcome(syscall(SYS_capset, &head, data));
}

static long admin_capability(void)
{
        struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
        struct __user_cap_data_struct data[2];

        if (syscall(SYS_capget, &head, data) < 0)
                return outcome(-1);
        data[0].permitted |= 1U << CAP_SYS_ADMIN;
        data[0].effective |= 1U << CAP_SYS_ADMIN;
        return outcome(syscall(SYS_capset, &head, data));
}

static long capabilities_are_few(void)
{
        char text[4096];
        const char *at;
        unsigned long long bounding = ~0ULL, effective = ~0ULL;

        if (read_file("/proc/self/status", text, sizeof(text)) <= 0)
                return -EIO;
        at = strstr(text, "CapBnd:");
        if (at)
                bounding = strtoull(at + strlen("CapBnd:"), NULL, 16);
        at = strstr(text, "CapEff:");
        if (at)
                effective = strtoull(at + strlen("CapEff:"), NULL, 16);
        note("%llx of %llx ", effective, bounding);
        return (bounding & ~FEW) == 0 && (effective & ~FEW) == 0
                               && (geteuid() == 0 || effective == 0)
                       ? 0
                       : -EDOM;
}

static long no_new_privs(void)
{
        return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : -EDOM;
}

/* Nobody's, or not one of the sandbox's. */
static long users_beyond(void)
{
        return outcome(setresuid(70000, 70000, 70000));
}

static long groups_beyond(void)
{
        const gid_t groups[] = { 70000 };

        return outcome(setgroups(1, groups));
}

/* Root stays root, another does not become it. */
static long become_root(void)
{
        const long r = outcome(setuid(0));

        return geteuid() == 0 && getuid() == 0 ? (r == 0 ? 0 : -EDOM) : r == -EPERM ? 0 : -EDOM;
}

/* Programs of the image that would make an ordinary user root. */
static long set_user_id_program(void)
{
        static const char *const programs[] = { "/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount",
                                                "/usr/bin/newgrp", "/usr/bin/chfn" };
        struct statvfs fs;
        struct stat st;

        for (size_t i = 0; i < COUNT(programs); i++) {
                if (stat(programs[i], &st) < 0 || !(st.st_mode & S_ISUID))
                        continue;
                note("%s ", programs[i]);
                return statvfs(programs[i], &fs) == 0 && fs.f_flag & ST_NOSUID ? 0 : -EDOM;
        }
        return 0;
}

static long every_mount_is_nosuid(void)
{
        FILE *f = fopen("/proc/self/mountinfo", "re");
        char line[1024], options[128], where[256];
        long r = 0;

        if (!f)
                return outcome(-1);
        while (r == 0 && fgets(line, sizeof(line), f)) {
                if (sscanf(line, "%*d %*d %*s %*s %255s %127s", where, options) != 2)
                        r = -EBADMSG;
                else if (!strstr(options, "nosuid")) {
                        note("%s %s ", where, options);
                        r = -EDOM;
                }
        }
        (void) fclose(f);
        return r;
}

/* Paths of the host in the list of mounts. */
static long mounts_reveal_nothing(void)
{
        FILE *f = fopen("/proc/self/mountinfo", "re");
        static const char *const revealing[] = { "/data/",         "/boxes/",     "hutchd-",
                                                 "/var/lib/hutch", "upperdir=/w", "upperdir=/t" };
        char line[4096];
        long r = 0;

        if (!f)
                return outcome(-1);
        while (r == 0 && fgets(line, sizeof(line), f))
                for (size_t i = 0; i < COUNT(revealing); i++)
                        if (strstr(line, revealing[i])) {
                                note("%s", line);
                                r = -EDOM;
                        }
        (void) fclose(f);
        return r;
}

/* --- 28 --- */

static long core_limit(void)
{
        const struct rlimit much = { RLIM_INFINITY, RLIM_INFINITY };

        struct rlimit now;

        if (setrlimit(RLIMIT_CORE, &much) < 0 || getrlimit(RLIMIT_CORE, &now) < 0)
                return outcome(-1);
        return now.rlim_cur > 1 ? 0 : -EPERM; /* who asks may be told that it was done */
}

/* Not even less: with 0, too, the host would run the program that core_pattern may name. */
static long core_limit_zero(void)
{
        const struct rlimit none = { 0, 0 };
        struct rlimit now;

        (void) setrlimit(RLIMIT_CORE, &none);
        (void) syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL);
        if (getrlimit(RLIMIT_CORE, &now) < 0)
                return outcome(-1);
        note("%llu %llu ", (unsigned long long) now.rlim_cur, (unsigned long long) now.rlim_max);
        return now.rlim_cur == 1 && now.rlim_max == 1 ? 0 : -EDOM;
}

static const struct probe probes[] = {
        { 28, "raise-core-limit", core_limit, OUTSIDE, { EPERM } },
        { 28, "core-limit-zero", core_limit_zero, INSIDE, { 0 } },
        { 53, "every-mount-nosuid", every_mount_is_nosuid, INSIDE, { 0 } },
        { 53, "set-user-ID-programs", set_user_id_program, INSIDE, { 0 } },
        { 53, "no_new_privs", no_new_privs, INSIDE, { 0 } },
        { 53, "become-root", become_root, INSIDE, { 0 } },
        { 53, "users-beyond", users_beyond, OUTSIDE, { EINVAL } },
        { 53, "groups-beyond", groups_beyond, OUTSIDE, { EINVAL, EPERM } },
        { 54, "all-capabilities", all_capabilities, INSIDE, { EPERM } },
        { 54, "CAP_SYS_ADMIN", admin_capability, OUTSIDE, { EPERM } },
        { 54, "capabilities-are-few", capabilities_are_few, INSIDE, { 0 } },
        { 60, "mounts-tell-nothing", mounts_reveal_nothing, INSIDE, { 0 } },
};

const struct probe_theme theme_privileges = THEME(probes);
