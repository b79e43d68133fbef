/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/import.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/extract.h"
#include "base/base.h"
#include "base/id.h"
#include "os/clone.h"
#include "os/confine.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/userns.h"
#include "os/walk.h"
#include "plan/seccomp.h"
#include "plan/spec.h"
#include "warden/data.h"

/* No valid name of a layer. */
#define FRESH ".fresh-"

#define PIECE (256 * KiB)

/* To set owners and modes, and to write where the archive has removed the permission. */
#define CAPS_KEPT (CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_DAC_OVERRIDE) | CAP_BIT(CAP_FOWNER))

/* The new namespaces of the child. */
#define NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET)

struct import_child {
        const char *dir; /* path of an empty one */
        int input, userns;
        int report; /* a struct import_report is written to it */
};

struct import_report {
        bool failed;
        struct err e;
};

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

/* --- in the child --- */

static int confine_mounts(const struct import_child *c)
{
        scoped(fd_closep) int place = -EBADF, view = -EBADF;
        int r = mount_make_private();

        if (r < 0)
                return r;
        place = open(c->dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = place < 0 ? -errno : mount_clone(place, "", false, &view);
        if (r == 0)
                r = mount_idmap(view, c->userns);
        if (r == 0)
                r = mount_set_attrs(view, MOUNT_SAFE, false);
        if (r == 0)
                r = mount_attach(view, place);
        return r == 0 ? mount_pivot_root(view) : r;
}

static int confine(struct import_child *c)
{
        int *const kept[] = { &c->input, &c->userns, &c->report };
        int r = fd_keep_only(kept, ARRAY_SIZE(kept));

        if (r == 0)
                r = confine_mounts(c);
        if (r == 0)
                r = confine_keyring();
        if (r == 0)
                r = userns_enter(c->userns);
        if (r == 0)
                r = caps_reduce(CAPS_KEPT);
        if (r == 0)
                r = confine_no_new_privs();
        return r == 0 ? confine_seccomp(seccomp_filter, seccomp_filter_n) : r;
}

struct unpacker {
        struct tar_reader tar;
        struct extract out;
        bool skip; /* the entry under way */
};

static int take_piece(struct unpacker *u, struct str piece, struct err *e)
{
        const struct tar_entry *entry = &u->tar.entry;
        struct str data;
        int r = 0;

        while (r == 0) {
                int event = tar_reader_next(&u->tar, &piece, &data);

                if (event < 0)
                        return err_set(e, ERR_INVALID, "not a valid tar archive: %s",
                                       u->tar.reason);
                if (event == TAR_NEED_INPUT)
                        return 0;
                if (event == TAR_HEADER) {
                        u->skip = entry->type == TAR_CHAR || entry->type == TAR_BLOCKDEV
                                  || entry->type == TAR_FIFO;
                        if (u->out.entries >= IMPORT_ENTRIES_MAX)
                                return err_set(e, ERR_TOO_LARGE, "more than %u entries",
                                               IMPORT_ENTRIES_MAX);
                        if (u->out.bytes + entry->size > IMPORT_BYTES_MAX)
                                return err_set(e, ERR_TOO_LARGE, "more than %llu bytes",
                                               (unsigned long long) IMPORT_BYTES_MAX);
                }
                if (u->skip)
                        continue;
                if (event == TAR_HEADER)
                        r = extract_entry(&u->out, entry, e);
                else if (event == TAR_DATA)
                        r = extract_data(&u->out, data, e);
                else
                        r = extract_entry_end(&u->out, e);
        }
        return r;
}

static int unpack(struct import_child *c, struct err *e)
{
        static char piece[PIECE];
        struct unpacker u;
        struct ids ids;
        ssize_t n;
        int root, r = confine(c);

        if (r < 0)
                return err_errno(e, r, "isolate the child that unpacks");
        root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
                return err_errno(e, -errno, "open the directory");
        ids_init(&ids);
        tar_reader_init(&u.tar);
        extract_init(&u.out, root, true, &ids);
        while (r == 0 && (n = read(c->input, piece, sizeof(piece))) != 0) {
                if (n > 0)
                        r = take_piece(&u, str_of(piece, (size_t) n), e);
                else if (errno != EINTR)
                        r = err_errno(e, -errno, "read the archive");
        }
        if (r == 0 && tar_reader_finish(&u.tar) < 0)
                r = err_set(e, ERR_INVALID, "not a tar archive, or a truncated one");
        while (r == 0 && (r = extract_finish(&u.out, e)) > 0)
                r = 0;
        if (r == 0 && u.out.entries == 0)
                r = err_set(e, ERR_INVALID, "the archive is empty");
        extract_done(&u.out);
        tar_reader_done(&u.tar);
        return r;
}

/* --- its parent --- */

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
        struct import_report report = { 0 };
        struct import_child child;
        pid_t pid;

        if (r == 0 && pipe2(pipes, O_CLOEXEC) < 0)
                r = -errno;
        if (r < 0)
                return err_errno(e, r, "prepare the child that unpacks");
        ours = pipes[0];
        theirs = pipes[1];
        pid = clone_child(&(struct clone_child){ NAMESPACES, -EBADF }, &pidfd);
        if (pid == 0) {
                child = (struct import_child){ dir, i->input, userns, theirs };
                report.failed = unpack(&child, &report.e) < 0;
                _exit(write(child.report, &report, sizeof(report)) == sizeof(report) ? 0 : 1);
        }
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
