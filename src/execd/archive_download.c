/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /files/archive?path=: a tree as a tar stream.
 *
 * A directory yields its content, with names relative to it and without an entry for itself; a file or a
 * symlink is one entry with its own name. So extracting into a directory what was read from another one
 * makes a copy.
 *
 * Symlinks are archived as symlinks and never followed; each of several hard links is a file of its own.
 * Sockets, FIFOs and devices are left out, and so are files that vanish meanwhile. Owners are numbers.
 *
 * A file has exactly as many bytes as its header says: bytes appended while it is read are not sent. If
 * that cannot be kept (a file shrinks, a file or directory cannot be read, a path is longer than the
 * kernel accepts), the response is aborted, so that no client takes it for the complete tree.
 */

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/tar.h"
#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/path.h"
#include "execd/response_stream.h"
#include "http/file.h"
#include "os/fd.h"
#include "os/walk.h"

#define OPEN_DIR  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

struct archive_download {
        struct response_stream stream;
        struct walk walk;
        bool walking;
        bool root_sent;  /* if the root is not a directory */
        struct str root; /* in the arena */
        int file;        /* being sent, or -EBADF */
        uint64_t left;   /* bytes of it to send, */
        unsigned pad;    /* and padding to follow */
};

/* --- entries --- */

static void add_header(struct buf *out, const struct stat *st, const struct tar_entry *what)
{
        struct tar_entry e = *what;

        e.mode = st->st_mode & 07777;
        e.uid = st->st_uid;
        e.gid = st->st_gid;
        e.mtime = st->st_mtim.tv_sec;
        e.mtime_nsec = (uint32_t) st->st_mtim.tv_nsec;
        tar_write_header(out, &e, TAR_WRITE_NSEC);
}

/* It vanished or changed its type: treated as if it had never existed. */
static bool is_gone(int r)
{
        return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EINVAL || r == -ENXIO;
}

static int add_file(struct archive_download *a, int dirfd, const char *name, struct str path,
                    struct buf *out)
{
        scoped(fd_closep) int fd = openat(dirfd, name, OPEN_FILE);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        add_header(out, &st,
                   &(struct tar_entry){
                           .type = TAR_FILE, .name = path, .size = (uint64_t) st.st_size });
        a->left = (uint64_t) st.st_size;
        a->pad = tar_padding(a->left);
        if (a->left > 0)
                a->file = TAKE_FD(fd);
        return 0;
}

static int add_link(int dirfd, const char *name, struct str path, struct buf *out)
{
        char target[PATH_MAX];
        struct stat st;
        ssize_t n;

        if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        n = readlinkat(dirfd, name, target, sizeof(target));
        if (n <= 0)
                return n < 0 ? -errno : -EINVAL;
        add_header(out, &st,
                   &(struct tar_entry){
                           .type = TAR_SYMLINK, .name = path, .link = str_of(target, (size_t) n) });
        return 0;
}

static int add_dir(int dirfd, const char *name, struct str path, struct buf *out)
{
        char slashed[PATH_MAX + 1];
        struct stat st;

        if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (!S_ISDIR(st.st_mode))
                return -ENOTDIR;
        memcpy(slashed, path.p, path.n);
        slashed[path.n] = '/';
        add_header(out, &st,
                   &(struct tar_entry){ .type = TAR_DIR, .name = str_of(slashed, path.n + 1) });
        return 0;
}

static int add_entry(struct archive_download *a, const struct walk_entry *e, struct buf *out)
{
        int r = 0;

        if (e->event == WALK_FAILED)
                r = e->error;
        else if (e->event == WALK_DIR)
                r = add_dir(e->dirfd, e->name, e->path, out);
        else if (e->event == WALK_ENTRY && e->type == DT_LNK)
                r = add_link(e->dirfd, e->name, e->path, out);
        else if (e->event == WALK_ENTRY && e->type == DT_REG)
                r = add_file(a, e->dirfd, e->name, e->path, out);
        return r < 0 && !is_gone(r) ? r : 1;
}

/* --- the stream --- */

static int add_content(struct archive_download *a, struct buf *out)
{
        static const char zeros[TAR_BLOCK];
        size_t want = (size_t) MIN_OF(a->left, (uint64_t) RESPONSE_STREAM_PIECE);
        char *p = buf_reserve(out, want);
        ssize_t n = p ? read(a->file, p, want) : -1;

        if (n <= 0)
                return n < 0 && p ? -errno : -EIO; /* shorter than its header says */
        buf_advance(out, (size_t) n);
        a->left -= (uint64_t) n;
        if (a->left == 0) {
                a->file = fd_close(a->file);
                buf_add(out, zeros, a->pad);
        }
        return 1;
}

static int produce(struct response_stream *s, struct buf *out)
{
        struct archive_download *a = container_of(s, struct archive_download, stream);
        struct walk_entry e;
        int r = 0;

        if (a->file >= 0) {
                r = add_content(a, out);
        } else if (a->walking) {
                r = walk_next(&a->walk, &e);
                if (r > 0)
                        r = add_entry(a, &e, out);
        } else if (!a->root_sent) {
                struct str name = str_from(strrchr(a->root.p, '/') + 1);

                a->root_sent = true;
                r = add_file(a, AT_FDCWD, a->root.p, name, out);
                if (r == -ELOOP)
                        r = add_link(AT_FDCWD, a->root.p, name, out);
                r = r < 0 ? r : 1;
        }
        if (r == 0)
                tar_write_end(out);
        if (r < 0)
                log_fields(&s->req->log, LOG_WARN, "archive aborted", LOG_F_STR("path", a->root),
                           LOG_F_STR("reason", str_from(err_text(r))));
        return r;
}

static void release(struct response_stream *s)
{
        struct archive_download *a = container_of(s, struct archive_download, stream);

        if (a->walking)
                walk_close(&a->walk);
        (void) fd_close(a->file);
        free(a);
}

/* --- the request --- */

/* A descriptor for a directory, none for a file or symlink. Negative: has replied. */
static int open_root(struct http_req *req, struct str path, int *ret_fd)
{
        struct stat st;
        int fd = open(path.p, OPEN_DIR), r = fd < 0 ? -errno : 0;

        if (r == 0) {
                *ret_fd = fd;
                return 0;
        }
        if ((r == -ENOTDIR || r == -ELOOP) && lstat(path.p, &st) == 0) {
                bool regular = S_ISREG(st.st_mode);

                if (S_ISLNK(st.st_mode) || (regular && access(path.p, R_OK) == 0))
                        return 0;
                http_reply_error(req, regular ? 500 : 400,
                                 regular ? CODE_RUNTIME_ERROR : CODE_INVALID_FILE,
                                 "'%.*s' can't be archived: it is %s", PROBLEM_PATH(path),
                                 regular ? "not readable" : "a device, FIFO or socket");
                return -EINVAL;
        }
        if (r == -ENOTDIR || r == -ELOOP)
                r = -errno; /* of lstat */
        problem_reply_file(req, r, "archive", path);
        return r;
}

static void get_archive(struct http_req *req)
{
        static const struct response_stream_ops ops = { .produce = produce, .release = release };
        struct archive_download *a;
        struct str path, clean;
        int fd = -EBADF, r;

        if (query_path(req, &path) < 0 || open_root(req, path, &fd) < 0)
                return;
        clean = path_clean(&req->arena, path);
        a = xnew(struct archive_download);
        *a = (struct archive_download){ .root = clean, .file = -EBADF };
        r = clean.p ? 0 : -ENOMEM;
        if (r == 0 && fd >= 0) {
                r = walk_open(&a->walk, TAKE_FD(fd), &(struct walk_options){ 0 });
                a->walking = r == 0;
        }
        if (r < 0) {
                (void) fd_close(fd);
                free(a);
                problem_reply_file(req, r, "archive", path);
                return;
        }
        path = str_from(arena_printf(&req->arena, "%s.tar",
                                     clean.n > 1 ? strrchr(clean.p, '/') + 1 : "root"));
        if (path.p)
                (void) http_res_attachment(req, path);
        response_stream_start(&a->stream, req, STR("application/x-tar"), &ops);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/files/archive", .scope = SCOPE_TOKEN, .exec = get_archive },
};

const struct http_api api_archive_download = EXECD_API("archive_download", routes);
