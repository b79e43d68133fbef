/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <unistd.h>

#include "archive/extract.h"
#include "base/base.h"
#include "os/confine.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/userns.h"
#include "plan/seccomp.h"
#include "warden/import_impl.h"

#define PIECE (256 * KiB)

/* To set owners and modes, and to write where the archive has removed the permission. */
#define CAPS_KEPT (CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_DAC_OVERRIDE) | CAP_BIT(CAP_FOWNER))

/* --- isolation --- */

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

/* --- unpacking --- */

struct unpacker {
        struct tar_reader tar;
        struct extract out;
        bool skip; /* the entry under way */
};

static int begin_entry(struct unpacker *u, struct err *e)
{
        u->skip = u->tar.entry.type == TAR_CHAR || u->tar.entry.type == TAR_BLOCKDEV
                  || u->tar.entry.type == TAR_FIFO;
        if (u->out.entries >= IMPORT_ENTRIES_MAX)
                return err_set(e, ERR_TOO_LARGE, "more than %u entries", IMPORT_ENTRIES_MAX);
        if (u->out.bytes + u->tar.entry.size > IMPORT_BYTES_MAX)
                return err_set(e, ERR_TOO_LARGE, "more than %llu bytes",
                               (unsigned long long) IMPORT_BYTES_MAX);
        return u->skip ? 0 : extract_entry(&u->out, &u->tar.entry, e);
}

static int take_piece(struct unpacker *u, struct str piece, struct err *e)
{
        struct str data;
        int r = 0;

        while (r == 0) {
                int event = tar_reader_next(&u->tar, &piece, &data);

                if (event < 0)
                        return err_set(e, ERR_INVALID, "not a valid tar archive: %s",
                                       u->tar.reason);
                if (event == TAR_NEED_INPUT)
                        return 0;
                if (event == TAR_HEADER)
                        r = begin_entry(u, e);
                else if (event == TAR_DATA)
                        r = u->skip ? 0 : extract_data(&u->out, data, e);
                else
                        r = u->skip ? 0 : extract_entry_end(&u->out, e);
        }
        return r;
}

static int unpack(struct unpacker *u, int input, struct err *e)
{
        static char piece[PIECE];
        ssize_t n;
        int r = 0;

        while (r == 0 && (n = read(input, piece, sizeof(piece))) != 0) {
                if (n < 0 && errno != EINTR)
                        return err_errno(e, -errno, "read the archive");
                if (n > 0)
                        r = take_piece(u, str_of(piece, (size_t) n), e);
        }
        if (r == 0 && tar_reader_finish(&u->tar) < 0)
                r = err_set(e, ERR_INVALID, "not a tar archive, or a truncated one");
        while (r == 0 && (r = extract_finish(&u->out, e)) > 0)
                r = 0;
        return r;
}

static int run(struct import_child *c, struct err *e)
{
        struct unpacker u;
        struct ids ids;
        int root, r = confine(c);

        if (r < 0)
                return err_errno(e, r, "isolate the child that unpacks");
        root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root < 0)
                return err_errno(e, -errno, "open the directory");
        ids_init(&ids);
        tar_reader_init(&u.tar);
        extract_init(&u.out, root, true, &ids);
        r = unpack(&u, c->input, e);
        if (r == 0 && u.out.entries == 0)
                r = err_set(e, ERR_INVALID, "the archive is empty");
        extract_done(&u.out);
        tar_reader_done(&u.tar);
        return r;
}

void import__child(const struct import_child *given)
{
        struct import_child c = *given;
        struct import_report report = { 0 };

        report.failed = run(&c, &report.e) < 0;
        _exit(write(c.report, &report, sizeof(report)) == sizeof(report) ? 0 : 1);
}
