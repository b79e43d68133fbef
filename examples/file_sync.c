/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes a folder in a sandbox equal to one here.
 *
 *         HUTCH_URL=... file_sync SANDBOX-ID FOLDER REMOTE-FOLDER
 *
 * The folder there is named by its whole path. Files that are missing there, differ in size, or are older
 * than ours are sent, all of them in one request, however large; what is there and not here is deleted.
 * Symbolic links and the like are left out. It prints what it did:
 *
 *         + path    was sent
 *         - path    was deleted
 *         2 sent, 1 deleted, 40 equal
 */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hutch/hutch.h>

struct file {
        char *name; /* from the folder on, without a slash in front */
        int64_t size, modified_at;
        unsigned mode;
        bool equal;
};

struct sync {
        const char *folder, *remote;
        struct hutch_client *client;
        struct hutch_endpoint *agent;
        struct hutch_call call;
        struct file *files;
        size_t n, sent, deleted;
};

static char *join(const char *a, const char *b)
{
        char *path = NULL;

        if (asprintf(&path, "%s/%s", a, b) < 0)
                abort();
        return path;
}

/* --- what is here --- */

static struct sync *walking; /* nftw has no room for an argument */

static int add_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
        struct sync *s = walking;
        struct file *more;

        (void) at;
        if (type != FTW_F || !S_ISREG(st->st_mode))
                return 0;
        more = realloc(s->files, (s->n + 1) * sizeof(*more));
        if (!more)
                return -1;
        s->files = more;
        s->files[s->n++] = (struct file){
                .name = strdup(path + strlen(s->folder) + 1),
                .size = st->st_size,
                .modified_at = (int64_t) st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000,
                .mode = st->st_mode & 0777,
        };
        return 0;
}

static bool look_here(struct sync *s)
{
        walking = s;
        if (nftw(s->folder, add_file, 32, FTW_PHYS) == 0)
                return true;
        fprintf(stderr, "file_sync: %s: %s\n", s->folder, strerror(errno));
        return false;
}

/* --- what is there --- */

static struct file *find(struct sync *s, const char *name)
{
        for (size_t i = 0; i < s->n; i++)
                if (strcmp(s->files[i].name, name) == 0)
                        return &s->files[i];
        return NULL;
}

/* Marks what is equal, and deletes what is not ours. */
static int compare(struct sync *s, const struct hutch_file_list *there)
{
        const char **extra = calloc(there->n + 1, sizeof(*extra));
        struct hutch_paths paths = { extra, 0 };
        int r = 0;

        if (!extra)
                return HUTCH_NO_MEMORY;
        for (size_t i = 0; i < there->n; i++) {
                const struct hutch_file_info *info = there->items[i];
                struct file *f = find(s, info->path + strlen(s->remote) + 1);

                if (f)
                        f->equal = info->size == f->size && info->modified_at >= f->modified_at;
                else
                        extra[paths.n++] = info->path;
        }
        if (paths.n > 0)
                r = hutch_delete_files(s->client, s->agent, &paths, &s->call);
        for (size_t i = 0; r == 0 && i < paths.n; i++)
                printf("- %s\n", paths.items[i] + strlen(s->remote) + 1);
        s->deleted = paths.n;
        free(extra);
        return r;
}

static int look_there(struct sync *s)
{
        struct hutch_permission folder = { .path = s->remote };
        struct hutch_search all = hutch_search_init();
        struct hutch_file_list *there = NULL;
        int r = hutch_make_directories(s->client, s->agent, &folder, 1, &s->call);

        all.dir = s->remote;
        if (r == 0)
                r = hutch_search_files(s->client, s->agent, &all, &there, &s->call);
        if (r == 0)
                r = compare(s, there);
        hutch_file_list_free(there);
        return r;
}

/* --- sending --- */

/* A file is opened when its turn comes, and not before: there may be more of them than descriptors. */
struct reader {
        char *path;
        int fd;
};

static int64_t read_file(void *ctx, void *buf, size_t n)
{
        struct reader *r = ctx;
        ssize_t got;

        if (r->fd < 0)
                r->fd = open(r->path, O_RDONLY | O_CLOEXEC);
        got = r->fd < 0 ? -1 : read(r->fd, buf, n);
        if (got <= 0 && r->fd >= 0) {
                close(r->fd);
                r->fd = -1;
        }
        return got;
}

static int send_changed(struct sync *s)
{
        struct hutch_file_upload *up = calloc(s->n + 1, sizeof(*up));
        struct reader *readers = calloc(s->n + 1, sizeof(*readers));
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; up && readers && i < s->n; i++) {
                if (s->files[i].equal)
                        continue;
                readers[n] = (struct reader){ join(s->folder, s->files[i].name), -1 };
                up[n] = hutch_file_upload_init();
                up[n].path = join(s->remote, s->files[i].name);
                up[n].mode = s->files[i].mode;
                up[n].source.read = read_file;
                up[n].source.ctx = &readers[n];
                up[n].source.n = (uint64_t) s->files[i].size;
                n++;
        }
        if (n > 0)
                r = hutch_upload_files(s->client, s->agent, up, n, &s->call);
        for (size_t i = 0; i < n; i++) {
                if (r == 0)
                        printf("+ %s\n", up[i].path + strlen(s->remote) + 1);
                if (readers[i].fd >= 0)
                        close(readers[i].fd);
                free(readers[i].path);
                free((char *) up[i].path);
        }
        s->sent = n;
        free(readers);
        free(up);
        return r;
}

int main(int argc, char **argv)
{
        struct sync s = { .call = hutch_call_init() };
        int status = 1;

        if (argc != 4) {
                fprintf(stderr, "usage: file_sync SANDBOX-ID FOLDER REMOTE-FOLDER\n");
                return 2;
        }
        s.folder = argv[2];
        s.remote = argv[3];
        if (hutch_client_new(getenv("HUTCH_URL"), getenv("HUTCH_API_KEY"), NULL, &s.client) < 0) {
                fprintf(stderr, "file_sync: HUTCH_URL is no address of a server\n");
                return 1;
        }
        if (look_here(&s)) {
                if (hutch_discover_execd(s.client, argv[1], &s.agent, &s.call) < 0
                    || look_there(&s) < 0 || send_changed(&s) < 0) {
                        fprintf(stderr, "file_sync: %s\n", s.call.error.message);
                } else {
                        printf("%zu sent, %zu deleted, %zu equal\n", s.sent, s.deleted,
                               s.n - s.sent);
                        status = 0;
                }
        }
        for (size_t i = 0; i < s.n; i++)
                free(s.files[i].name);
        free(s.files);
        hutch_endpoint_free(s.agent);
        hutch_client_free(s.client);
        return status;
}
