/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/epoll.h>
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

#define REMOVING "removing"

struct pass {
        int trash;
        bool found, failed;
};

/* Under one name, unless another one could not be removed from there: the kernel remembers the name of everything that was
 * removed, and those in the trash are unique. */
static int remove_one(void *data, const char *name)
{
        struct pass *p = data;

        p->found = true;
        if (renameat(p->trash, name, p->trash, REMOVING) == 0)
                name = REMOVING;
        p->failed |= walk_remove_all(p->trash, name) < 0;
        return 0;
}

/* Removes what is in the trash, until a pass finds nothing: the warden adds more meanwhile. Reports if something can't
 * be removed; it is tried again at the next wake-up. After the warden has exited it cleans once more: the last
 * addition may have come behind a pass. */
never_returns static void run(int trash, int socket)
{
        int *const kept[] = { &trash, &socket };
        char byte;
        ssize_t n;

        (void) prctl(PR_SET_NAME, "hutch-janitor");
        (void) setpriority(PRIO_PROCESS, 0, 10);
        if (fd_keep_only(kept, ARRAY_SIZE(kept)) < 0)
                _exit(1);
        do {
                struct pass p = { .trash = trash };

                n = recv(socket, &byte, 1, 0);
                do {
                        p.found = false;
                        p.failed |= walk_names(trash, ".", remove_one, &p) < 0;
                } while (p.found && !p.failed);
                if (p.failed)
                        (void) send(socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        } while (n > 0 || (n < 0 && errno == EINTR));
        _exit(0);
}

/* --- in the warden --- */

void janitor_close(struct warden *w)
{
        struct janitor *j = &w->janitor;
        const int fd = j->source.fd;

        source_remove(w, &j->source);
        (void) fd_close(fd);
        j->pidfd = fd_close(j->pidfd);
}

static void janitor_reported(struct warden *w, struct source *source)
{
        struct janitor *j = container_of(source, struct janitor, source);
        int status;
        char byte;
        ssize_t n = recv(source->fd, &byte, 1, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        log_warn(w->log, "can't remove everything in the trash");
        if (n > 0)
                return;
        (void) !pidfd_wait(j->pidfd, &status);
        janitor_close(w);
}

/* Wakes the janitor, which is started if it does not run. If the socket is full, the janitor will wake up often enough
 * without this byte. */
void janitor_start(struct warden *w)
{
        struct janitor *j = &w->janitor;
        scoped(fd_closep) int theirs = -EBADF;
        int pair[2], r = 0;
        pid_t pid;

        if (j->source.fd < 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
                r = -errno;
        } else if (j->source.fd < 0) {
                theirs = pair[1];
                pid = clone_child(&(struct clone_child){ .cgroup = -EBADF }, &j->pidfd);
                if (pid == 0)
                        run(w->trash, theirs);
                r = pid < 0 ? pid : source_add(w, &j->source, pair[0], EPOLLIN, janitor_reported);
                if (r < 0) {
                        (void) fd_close(pair[0]);
                        j->pidfd = fd_close(j->pidfd);
                }
        }
        if (r == 0 && send(j->source.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
                r = -errno;
        if (r < 0)
                (void) log_err(r, w->log, "can't start the janitor");
}

/* The name in the trash is unique, also across restarts. */
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
