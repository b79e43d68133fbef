/* SPDX-License-Identifier: Apache-2.0 */
#include "os/walk.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/names.h"

/*
 * Theory of operation. The levels are a stack, the root at its bottom. The innermost of them are
 * open, each with a descriptor and what getdents64 returned and was not reported yet; those further
 * out are parked: they know their inode, and how far they were read. A level is parked when a
 * deeper one needs its descriptor, and opened again through ".." when the walk comes back to it.
 *
 * walk_next does one step of a state machine; a step that leads to no entry reports WALK_AGAIN.
 *
 * glibc's DIR is not used: its buffer is four times as large, and it could not be parked.
 */

#define OPEN_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define FIRST_ROOM 16

struct open_dir {
        int fd;
        size_t pos, n;
        _Alignas(struct dirent64) char data[WALK_READ_SIZE];
};

struct walk_level {
        struct open_dir *open; /* NULL: parked */
        dev_t dev;
        ino_t ino;
        off_t at;            /* the kernel's position after the last name reported */
        size_t path_n;       /* length of this directory's path */
        struct names *names; /* sorted walks only */
        size_t charged;      /* of the walk's _sorting */
        bool sorting;        /* the names of this pass are complete */
        bool taking;         /* and in order */
};

enum state {
        READING,  /* the next entry of the innermost level */
        ENTERING, /* WALK_DIR was reported: open it */
        SKIPPING, /* WALK_DIR was reported: it is not, or could not be, opened */
        ENDING,   /* the innermost level has no more: WALK_DIR_END */
};

static struct walk_level *top(const struct walk *w)
{
        return &w->_levels[w->_n - 1];
}

/* --- levels --- */

static int make_room(struct walk *w)
{
        size_t room = w->_room ? 2 * w->_room : FIRST_ROOM;
        struct walk_level *levels;

        if (w->_n < w->_room)
                return 0;
        if (w->_n >= WALK_DEPTH_MAX)
                return -ENAMETOOLONG;
        levels = realloc(w->_levels, room * sizeof(*levels));
        if (!levels)
                return -ENOMEM;
        w->_levels = levels;
        w->_room = room;
        return 0;
}

static struct open_dir *open_dir_new(int fd)
{
        struct open_dir *d = malloc(sizeof(*d));

        if (!d) {
                (void) fd_close(fd);
                return NULL;
        }
        d->fd = fd;
        d->pos = d->n = 0;
        return d;
}

static void open_dir_free(struct open_dir *d)
{
        if (!d)
                return;
        (void) fd_close(d->fd);
        free(d);
}

static void select_names(struct walk *w, struct walk_level *l)
{
        size_t left;

        w->_sorting -= l->charged;
        l->charged = 0;
        left = w->_options.sort_max - MIN_OF(w->_sorting, w->_options.sort_max);
        names_begin(l->names, MAX_OF(left / 2, WALK_SORT_MIN));
        l->sorting = l->taking = false;
}

/* Takes fd. */
static int push(struct walk *w, int fd)
{
        struct walk_level l = { .path_n = w->_path.n };
        struct stat st;
        int r = fstat(fd, &st) < 0 ? -errno : make_room(w);

        if (r < 0) {
                (void) fd_close(fd);
                return r;
        }
        l.dev = st.st_dev;
        l.ino = st.st_ino;
        l.open = open_dir_new(fd);
        if (!l.open)
                return -ENOMEM;
        if (w->_n_open == WALK_OPEN_MAX) { /* park the outermost open level */
                open_dir_free(TAKE_PTR(w->_levels[w->_n - w->_n_open].open));
                w->_n_open--;
        }
        if (w->_options.flags & WALK_SORTED) {
                l.names = xnew(struct names);
                names_init(l.names);
                select_names(w, &l);
        }
        w->_levels[w->_n++] = l;
        w->_n_open++;
        return 0;
}

/* Opens a parked level from the one inside it. */
static int unpark(struct walk_level *l, int inner_fd)
{
        scoped(fd_closep) int fd = openat(inner_fd, "..", OPEN_FLAGS);
        struct stat st;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_dev != l->dev || st.st_ino != l->ino)
                return -ESTALE;
        if (!l->names && lseek(fd, l->at, SEEK_SET) < 0)
                return -errno;
        l->open = open_dir_new(TAKE_FD(fd));
        return l->open ? 0 : -ENOMEM;
}

static void level_done(struct walk *w, struct walk_level *l)
{
        open_dir_free(l->open);
        w->_sorting -= l->charged;
        if (l->names)
                names_done(l->names);
        free(l->names);
}

static int pop(struct walk *w)
{
        struct walk_level l = *top(w);
        int r = 0;

        w->_n--;
        w->_n_open--;
        if (w->_n > 0 && w->_n_open == 0) {
                r = unpark(top(w), l.open->fd);
                w->_n_open = r == 0;
        }
        level_done(w, &l);
        return r;
}

/* --- life --- */

int walk_open(struct walk *w, int rootfd, const struct walk_options *options)
{
        int r;

        *w = (struct walk){ ._options = *options, ._state = READING };
        if (!w->_options.path_max)
                w->_options.path_max = PATH_MAX - 1;
        if (!w->_options.sort_max)
                w->_options.sort_max = WALK_SORT_MAX;
        buf_init(&w->_path, w->_options.path_max);
        r = push(w, rootfd);
        if (r < 0)
                walk_close(w);
        return r;
}

void walk_close(struct walk *w)
{
        while (w->_n > 0)
                level_done(w, &w->_levels[--w->_n]);
        free(TAKE_PTR(w->_levels));
        w->_room = w->_n_open = 0;
        buf_done(&w->_path);
}

/* --- reading names --- */

/* 1 if there is something in the buffer, 0 at the end. */
static int refill(struct open_dir *d)
{
        ssize_t n;

        if (d->pos < d->n)
                return 1;
        n = getdents64(d->fd, d->data, sizeof(d->data));
        /* A directory that was removed meanwhile has no more entries. */
        if (n < 0 && errno == ENOENT)
                n = 0;
        if (n < 0)
                return -errno;
        d->pos = 0;
        d->n = (size_t) n;
        return n > 0;
}

static const struct dirent64 *next_dirent(struct open_dir *d)
{
        const struct dirent64 *e;

        while (d->pos < d->n) {
                e = (const struct dirent64 *) (const void *) (d->data + d->pos);
                d->pos += e->d_reclen;
                if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                        return e;
        }
        return NULL;
}

struct found {
        const char *name;
        unsigned char type;
};

/* 1 found, 0 the directory has no more, -EAGAIN, or what went wrong. */
static int read_sorted(struct walk *w, struct walk_level *l, struct found *ret)
{
        const struct dirent64 *e;
        int r;

        if (!l->sorting) { /* offers one buffer of names */
                r = refill(l->open);
                l->sorting = r == 0;
                while (r >= 0 && (e = next_dirent(l->open)) != NULL)
                        r = names_offer(l->names, e->d_name, e->d_type);
                return r < 0 ? r : -EAGAIN;
        }
        if (!l->taking) {
                if (names_sort(l->names))
                        return -EAGAIN;
                l->charged = names_bytes(l->names);
                w->_sorting += l->charged;
                l->taking = true;
        }
        if (names_take(l->names, &ret->name, &ret->type))
                return 1;
        if (!names_has_more(l->names))
                return 0;
        if (lseek(l->open->fd, 0, SEEK_SET) < 0)
                return -errno;
        l->open->pos = l->open->n = 0;
        select_names(w, l);
        return -EAGAIN;
}

/* --- reporting --- */

/* The entry at the end of _path, whose name starts there at `name`. */
static int report(const struct walk *w, enum walk_event event, size_t name, struct walk_entry *ret)
{
        struct str path = buf_str(&w->_path);

        *ret = (struct walk_entry){ .event = event,
                                    .dirfd = top(w)->open->fd,
                                    .name = path.p + name,
                                    .path = path,
                                    .depth = (unsigned) w->_n,
                                    .type = DT_DIR };
        return 1;
}

static int report_failed(const struct walk *w, size_t name, int error, struct walk_entry *ret)
{
        (void) report(w, WALK_FAILED, name, ret);
        ret->error = error;
        return 1;
}

static int report_again(struct walk_entry *ret)
{
        *ret = (struct walk_entry){ .event = WALK_AGAIN, .dirfd = -EBADF };
        return 1;
}

static int report_found(struct walk *w, struct found *f, struct walk_entry *ret)
{
        size_t n = strlen(f->name);
        struct stat st;
        bool fits;

        if (f->type == DT_UNKNOWN) { /* some file systems do not return types with names */
                if (fstatat(top(w)->open->fd, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        return report_again(ret); /* vanished */
                f->type = IFTODT(st.st_mode);
        }
        buf_truncate(&w->_path, top(w)->path_n);
        fits = n + 1 <= buf_room(&w->_path);
        if (fits && top(w)->path_n > 0)
                buf_add_char(&w->_path, '/');
        w->_name_at = w->_path.n;
        if (fits)
                buf_add(&w->_path, f->name, n);
        if (!fits || buf_failed(&w->_path)) {
                (void) report_failed(w, 0, -ENAMETOOLONG, ret);
                ret->name = f->name;
                return 1;
        }
        (void) report(w, f->type == DT_DIR ? WALK_DIR : WALK_ENTRY, w->_name_at, ret);
        ret->type = f->type;
        if (f->type == DT_DIR)
                w->_state = w->_options.depth_max && w->_n >= w->_options.depth_max ? SKIPPING
                                                                                    : ENTERING;
        return 1;
}

/* --- the states --- */

static int read_entry(struct walk *w, struct walk_entry *ret)
{
        struct walk_level *l = top(w);
        struct found found = { "", DT_UNKNOWN };
        const struct dirent64 *e;
        int r = l->names ? read_sorted(w, l, &found) : refill(l->open);

        if (r > 0 && !l->names) {
                e = next_dirent(l->open);
                if (!e)
                        return report_again(ret);
                l->at = e->d_off;
                found = (struct found){ e->d_name, e->d_type };
        }
        if (r == -EAGAIN)
                return report_again(ret);
        if (r > 0)
                return report_found(w, &found, ret);
        w->_state = ENDING;
        if (r == 0)
                return report_again(ret);
        buf_truncate(&w->_path, l->path_n);
        (void) report_failed(w, 0, r, ret);
        ret->name = ".";
        return 1;
}

int walk_next(struct walk *w, struct walk_entry *ret)
{
        size_t parent_n;
        int fd, r;

        if (w->_n_open == 0)
                return 0;
        switch ((enum state) w->_state) {
        case READING:
                return read_entry(w, ret);
        case ENTERING:
                fd = openat(top(w)->open->fd, buf_str(&w->_path).p + w->_name_at, OPEN_FLAGS);
                r = fd < 0 ? -errno : push(w, fd);
                w->_state = r < 0 ? SKIPPING : READING;
                return r < 0 ? report_failed(w, w->_name_at, r, ret) : report_again(ret);
        case SKIPPING:
                w->_state = READING;
                return report(w, WALK_DIR_END, w->_name_at, ret);
        case ENDING:
        default:
                buf_truncate(&w->_path, top(w)->path_n);
                r = pop(w);
                if (r < 0 || w->_n == 0)
                        return r;
                w->_state = READING;
                parent_n = top(w)->path_n;
                return report(w, WALK_DIR_END, parent_n > 0 ? parent_n + 1 : 0, ret);
        }
}

void walk_skip(struct walk *w)
{
        ASSERT(w->_state == ENTERING || w->_state == SKIPPING);
        w->_state = SKIPPING;
}

int walk_names(int dirfd, const char *path, walk_name_fn *fn, void *data)
{
        int fd = openat(dirfd, path, OPEN_FLAGS), r;
        struct open_dir *d;

        if (fd < 0)
                return -errno;
        d = open_dir_new(fd);
        if (!d)
                return -ENOMEM;
        while ((r = refill(d)) > 0) {
                const struct dirent64 *e = next_dirent(d);

                r = e ? fn(data, e->d_name) : 0;
                if (r != 0)
                        break;
        }
        open_dir_free(d);
        return r;
}
