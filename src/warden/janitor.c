/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/walk.h"
#include "warden/warden_impl.h"

/* --- in the child --- */

/* Until a pass finds nothing: more comes while it is at work. What can't be removed stays, and is tried
 * again by the next janitor. */
never_returns static void clean(int trash)
{
        int *const kept[] = { &trash };
        bool found = true, failed = false;

        (void) setpriority(PRIO_PROCESS, 0, 10);
        if (fd_keep_only(kept, ARRAY_SIZE(kept)) < 0)
                _exit(2);
        while (found && !failed) {
                int fd = openat(trash, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                DIR *d = fd < 0 ? NULL : fdopendir(fd);
                const struct dirent *entry;

                if (!d)
                        _exit(2);
                found = false;
                while ((entry = readdir(d))) {
                        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                                continue;
                        found = true;
                        failed |= walk_remove_all(trash, entry->d_name) < 0;
                }
                (void) closedir(d);
        }
        _exit(failed ? 1 : 0);
}

/* --- in the warden --- */

static void ended(struct warden *w, struct source *source)
{
        struct janitor *j = container_of(source, struct janitor, source);
        int status = 0, r;

        source_remove(w, source);
        r = pidfd_wait(j->pidfd, &status);
        j->pidfd = fd_close(j->pidfd);
        if (r < 0 || status != 0)
                log_warn(w->log, "not all of the trash could be removed");
        if (j->more)
                janitor_start(w);
}

void janitor_start(struct warden *w)
{
        struct janitor *j = &w->janitor;
        pid_t pid;
        int r;

        j->more = j->pidfd >= 0;
        if (j->more)
                return;
        pid = clone_child(&(struct clone_child){ 0, -EBADF }, &j->pidfd);
        if (pid == 0)
                clean(w->trash);
        r = pid < 0 ? pid : source_add(w, &j->source, j->pidfd, ended);
        if (r < 0) {
                j->pidfd = fd_close(j->pidfd);
                (void) log_err(r, w->log, "can't start a janitor");
        }
}

/* The name in there is new each time, also after a restart. */
int janitor_take(struct warden *w, int from, const char *name)
{
        char fresh[PLAN_NAME_MAX + 64];

        (void) snprintf(fresh, sizeof(fresh), "%.63s-%llu-%llu", name,
                        (unsigned long long) clock_mono(&clock_system),
                        (unsigned long long) w->trashed++);
        if (renameat(from, name, w->trash, fresh) < 0)
                return errno == ENOENT ? 0 : -errno;
        janitor_start(w);
        return 0;
}

static void let_go(struct warden *w)
{
        source_remove(w, &w->janitor.source);
        w->janitor.pidfd = fd_close(w->janitor.pidfd);
}

/* It goes on alone; a second one sees to what the first may have passed already. */
void janitor_close(struct warden *w)
{
        let_go(w);
        if (!w->janitor.more)
                return;
        janitor_start(w);
        let_go(w);
}
