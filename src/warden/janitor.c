/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/walk.h"
#include "warden/warden_impl.h"

/* --- in the child --- */

/* Until a pass finds nothing: more comes while it is at work. False: something can't be removed. It stays,
 * and is tried again the next time. */
static bool clean(int trash)
{
        bool found = true, failed = false;

        while (found && !failed) {
                int fd = openat(trash, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                DIR *d = fd < 0 ? NULL : fdopendir(fd);
                const struct dirent *entry;

                if (!d)
                        return false;
                found = false;
                while ((entry = readdir(d))) {
                        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                                continue;
                        found = true;
                        failed |= walk_remove_all(trash, entry->d_name) < 0;
                }
                (void) closedir(d);
        }
        return !failed;
}

/* When the warden has ended, it looks once more: what came last may have been passed already. */
never_returns static void run(int trash, int socket)
{
        int *const kept[] = { &trash, &socket };
        char word;
        ssize_t n;

        (void) prctl(PR_SET_NAME, "hutch-janitor");
        (void) setpriority(PRIO_PROCESS, 0, 10);
        if (fd_keep_only(kept, ARRAY_SIZE(kept)) < 0)
                _exit(1);
        do {
                n = recv(socket, &word, 1, 0);
                if (!clean(trash))
                        (void) send(socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        } while (n > 0 || (n < 0 && errno == EINTR));
        _exit(0);
}

/* --- in the warden --- */

static void let_go(struct warden *w)
{
        struct janitor *j = &w->janitor;
        const int fd = j->source.fd;

        source_remove(w, &j->source);
        (void) fd_close(fd);
        j->pidfd = fd_close(j->pidfd);
}

static void spoke(struct warden *w, struct source *source)
{
        struct janitor *j = container_of(source, struct janitor, source);
        ssize_t n;
        char word;
        int status;

        n = recv(source->fd, &word, 1, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        log_warn(w->log, "not all of the trash could be removed");
        if (n > 0)
                return;
        (void) !pidfd_wait(j->pidfd, &status);
        let_go(w);
}

static int start(struct warden *w)
{
        struct janitor *j = &w->janitor;
        scoped(fd_closep) int theirs = -EBADF;
        int pair[2], r;
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        theirs = pair[1];
        pid = clone_child(&(struct clone_child){ .cgroup = -EBADF }, &j->pidfd);
        if (pid == 0)
                run(w->trash, theirs);
        r = pid < 0 ? pid : source_add(w, &j->source, pair[0], spoke);
        if (r < 0) {
                (void) fd_close(pair[0]);
                j->pidfd = fd_close(j->pidfd);
        }
        return r;
}

/* A word that does not fit into the socket stands behind so many others that it will be looked at. */
void janitor_start(struct warden *w)
{
        int r = w->janitor.source.fd >= 0 ? 0 : start(w);

        if (r == 0 && send(w->janitor.source.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0
            && errno != EAGAIN)
                r = -errno;
        if (r < 0)
                (void) log_err(r, w->log, "can't start a janitor");
}

/* The name in there is new each time, also after a restart. */
int janitor_trash(struct warden *w, int from, const char *name)
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

/* It goes on alone, until nothing is left. */
void janitor_close(struct warden *w)
{
        let_go(w);
}
