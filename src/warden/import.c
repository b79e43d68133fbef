/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/import.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/id.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/userns.h"
#include "os/walk.h"
#include "plan/spec.h"
#include "warden/data.h"
#include "warden/import_impl.h"

/* No valid name of a layer. */
#define FRESH ".fresh-"

/* --- incomplete images --- */

/* The process that fills one holds a lock on it. */
static int open_locked(int layers, const char *name)
{
        scoped(fd_closep) int fd =
                openat(layers, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int sweep_one(void *data, const char *name)
{
        const int layers = *(const int *) data;
        scoped(fd_closep) int lock = -EBADF;

        if (!str_starts_with(str_from(name), STR(FRESH)))
                return 0;
        lock = open_locked(layers, name);
        return lock < 0 ? 0 : walk_remove_all(layers, name);
}

/* --- the child --- */

/* The message contains names from the archive and comes from a process that the archive may have taken over:
 * unprintable bytes are replaced, because it goes to a terminal. */
static int read_report(int fd, struct err *e)
{
        struct import_report report;
        ssize_t n;

        do
                n = read(fd, &report, sizeof(report));
        while (n < 0 && errno == EINTR);
        if (n != sizeof(report))
                return err_set(e, ERR_INTERNAL, "the child that unpacks was killed");
        if (!report.failed)
                return 0;
        report.e.message[sizeof(report.e.message) - 1] = '\0';
        for (char *c = report.e.message; *c; c++)
                if ((unsigned char) *c < ' ' || (unsigned char) *c >= 0x7f)
                        *c = '?';
        return err_set(e, (unsigned) report.e.code < ERR_CODE_MAX_ ? report.e.code : ERR_INTERNAL,
                       "%s", report.e.message);
}

static int run_child(const struct import *i, const char *dir, struct err *e)
{
        const struct userns_range range = { i->uid_first, PLAN_UIDS };
        scoped(fd_closep) int userns = -EBADF, ours = -EBADF, theirs = -EBADF, pidfd = -EBADF;
        int pipes[2] = { -EBADF, -EBADF }, status = 0, r = userns_make(&range, &userns);
        pid_t pid;

        if (r == 0 && pipe2(pipes, O_CLOEXEC) < 0)
                r = -errno;
        if (r < 0)
                return err_errno(e, r, "prepare the child that unpacks");
        ours = pipes[0];
        theirs = pipes[1];
        pid = clone_child(&(struct clone_child){ IMPORT_NAMESPACES, -EBADF }, &pidfd);
        if (pid == 0)
                import__child(&(struct import_child){ dir, i->input, userns, theirs });
        (void) fd_close(TAKE_FD(theirs)); /* so that the death of the child is an end of file */
        if (pid < 0)
                return err_errno(e, pid, "start the child that unpacks");
        r = read_report(ours, e);
        return pidfd_wait(pidfd, &status) < 0
                       ? err_errno(e, -ECHILD, "wait for the child that unpacks")
                       : r;
}

/* --- the import --- */

static int fill(const struct import *i, int layers, const char *fresh, struct err *e)
{
        scoped(fd_closep) int lock = -EBADF;
        char dir[PATH_MAX];
        int r;

        if (mkdirat(layers, fresh, 0755) < 0)
                return err_errno(e, -errno, "make a directory");
        lock = open_locked(layers, fresh);
        if (lock < 0)
                return err_errno(e, lock, "lock a directory");
        (void) snprintf(dir, sizeof(dir), "%s/" DATA_LAYERS "/%s", i->data, fresh);
        r = run_child(i, dir, e);
        if (r < 0)
                return r;
        if (syncfs(lock) < 0)
                return err_errno(e, -errno, "write it to disk");
        if (renameat2(layers, fresh, layers, i->name, RENAME_NOREPLACE) < 0)
                return err_errno(e, -errno, "name it");
        return fsync(layers) < 0 ? err_errno(e, -errno, "write its name to disk") : 0;
}

int import_image(const struct import *i, struct err *e)
{
        scoped(fd_closep) int layers = -EBADF, readable = -EBADF;
        char fresh[sizeof(FRESH) + ID_HEX_LEN], id[ID_HEX_LEN + 1];
        struct ids ids;
        int r;

        if (!plan_spec_is_layer(i->name) || strcmp(i->name, "host") == 0)
                return err_set(
                        e, ERR_INVALID,
                        "the name of an image consists of a-z, 0-9, '-', '_' and '.', and is not 'host'");
        r = data_open_layers(i->data, &layers);
        if (r < 0)
                return err_errno(e, r, "open the data directory '%s'", i->data);
        readable = openat(layers, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (readable < 0)
                return err_errno(e, -errno, "open the layers");
        r = walk_names(readable, ".", sweep_one, &readable);
        if (r < 0)
                return err_errno(e, r, "remove an incomplete import");
        if (faccessat(readable, i->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return err_set(e, ERR_EXISTS, "the image '%s' exists already: choose another name",
                               i->name);
        ids_init(&ids);
        ids_hex(&ids, id);
        (void) snprintf(fresh, sizeof(fresh), FRESH "%s", id);
        r = fill(i, readable, fresh, e);
        if (r < 0 && walk_remove_all(readable, fresh) < 0)
                (void) err_wrap(e, "the unpacked files can't be removed, and before that");
        return r < 0 ? err_wrap(e, "import '%s'", i->name) : 0;
}
