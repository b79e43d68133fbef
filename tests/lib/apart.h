/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_APART_H
#define HUTCH_TESTS_LIB_APART_H

/*
 * Runs a test in a child process in new namespaces, so that the host is not changed.
 *
 * cmocka's checks jump back into the runner and must not be used there: the function checks with
 * apart_check and returns 0 at its end.
 */

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/mount.h"
#include "tests/lib/check.h"

#define APART_NOTE_MAX 512

static char *apart_note_; /* shared with the child */

#define apart_check(cond)                                                                         \
        do {                                                                                      \
                if (!(cond)) {                                                                    \
                        (void) snprintf(apart_note_, APART_NOTE_MAX, "%s:%d: case '%s': %s (%s)", \
                                        __FILE__, __LINE__, check_case_name_, #cond,              \
                                        strerror(errno));                                         \
                        return 1;                                                                 \
                }                                                                                 \
        } while (0)

typedef int apart_fn(void *data);

static inline bool apart_possible(void)
{
        return geteuid() == 0;
}

/* Namespaces: CLONE_NEWNS … or 0. The wait status is returned. */
static inline int apart_status(apart_fn *fn, void *data, int namespaces)
{
        int status;
        pid_t pid;

        if (!apart_note_) {
                apart_note_ = mmap(NULL, APART_NOTE_MAX, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
                check_true(apart_note_ != MAP_FAILED);
        }
        apart_note_[0] = '\0';
        pid = fork();
        check_true(pid >= 0);
        if (pid == 0) {
                int r = unshare(namespaces);

                if (r == 0 && (namespaces & CLONE_NEWNS))
                        r = mount_make_private();
                _exit(r == 0 ? fn(data) : 99);
        }
        check_i64_eq(waitpid(pid, &status, 0), pid);
        return status;
}

static inline void apart_run(apart_fn *fn, void *data, int namespaces)
{
        int status = apart_status(fn, data, namespaces);

        if (status != 0)
                fail_msg("%s (status %#x)", apart_note_, (unsigned) status);
}

#endif
