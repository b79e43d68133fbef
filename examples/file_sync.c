/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Makes a directory in a sandbox equal to a local one.
 *
 *         file_sync SANDBOX-ID LOCAL-DIR REMOTE-DIR
 *
 * REMOTE-DIR is an absolute path. Files that are missing there, differ in size, or are older than
 * the local ones are uploaded in one request of any size. Files that do not exist locally are
 * deleted. Symbolic links and special files are skipped. Prints what it did:
 *
 *         + path    uploaded
 *         - path    deleted
 *         2 uploaded, 1 deleted, 40 unchanged
 *
 * Environment: HUTCH_URL (default http://localhost:8080), HUTCH_API_KEY.
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
        char *name; /* relative to the directory */
        int64_t size, modified_at;
        unsigned mode;
        bool unchanged;
};

struct sync {
        const char *local_dir, *remote_dir;
        struct hutch_client *client;
        struct hutch_endpoint *agent;
        struct hutch_call call;
        struct file *files;
        size_t n, uploaded, deleted;
};

static char *join(const char *a, const char *b)
{
        char *path = NULL;

        if (asprintf(&path, "%s/%s", a, b) < 0)
                abort();
        return path;
}

/* --- local files --- */

static struct sync *current; /* nftw takes no argument for its callback */

static int add_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
        struct sync *s = current;
        struct file *files;

        (void) at;
        if (type != FTW_F || !S_ISREG(st->st_mode))
                return 0;
        files = realloc(s->files, (s->n + 1) * sizeof(*files));
        if (!files)
                return -1;
        s->files = files;
        s->files[s->n++] = (struct file){
                .name = strdup(path + strlen(s->local_dir) + 1),
                .size = st->st_size,
                .modified_at = (int64_t) st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000,
                .mode = st->st_mode & 0777,
        };
        return 0;
}

static bool list_local(struct sync *s)
{
        current = s;
        if (nftw(s->local_dir, add_file, 32, FTW_PHYS) == 0)
                return true;
        fprintf(stderr, "file_sync: %s: %s\n", s->local_dir, strerror(errno));
        return false;
}

/* --- remote files --- */

static struct file *find(struct sync *s, const char *name)
{
        for (size_t i = 0; i < s->n; i++)
                if (strcmp(s->files[i].name, name) == 0)
                        return &s->files[i];
        return NULL;
}

/* Marks unchanged files and deletes those that do not exist locally. */
static int compare(struct sync *s, const struct hutch_file_list *remote)
{
        const char **extra = calloc(remote->n + 1, sizeof(*extra));
        struct hutch_paths paths = { extra, 0 };
        int r = 0;

        if (!extra)
                return HUTCH_NO_MEMORY;
        for (size_t i = 0; i < remote->n; i++) {
                const struct hutch_file_info *info = remote->items[i];
                struct file *f = find(s, info->path + strlen(s->remote_dir) + 1);

                if (f)
                        f->unchanged = info->size == f->size && info->modified_at >= f->modified_at;
                else
                        extra[paths.n++] = info->path;
        }
        if (paths.n > 0)
                r = hutch_delete_files(s->client, s->agent, &paths, &s->call);
        for (size_t i = 0; r == 0 && i < paths.n; i++)
                printf("- %s\n", paths.items[i] + strlen(s->remote_dir) + 1);
        s->deleted = paths.n;
        free(extra);
        return r;
}

static int list_remote(struct sync *s)
{
        struct hutch_permission dir = { .path = s->remote_dir };
        struct hutch_search search = hutch_search_init();
        struct hutch_file_list *remote = NULL;
        int r = hutch_make_directories(s->client, s->agent, &dir, 1, &s->call);

        search.dir = s->remote_dir;
        if (r == 0)
                r = hutch_search_files(s->client, s->agent, &search, &remote, &s->call);
        if (r == 0)
                r = compare(s, remote);
        hutch_file_list_free(remote);
        return r;
}

/* --- upload --- */

/* A file is opened when it is first read: there may be more files than descriptors. */
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

static int upload_changed(struct sync *s)
{
        struct hutch_file_upload *uploads = calloc(s->n + 1, sizeof(*uploads));
        struct reader *readers = calloc(s->n + 1, sizeof(*readers));
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; uploads && readers && i < s->n; i++) {
                if (s->files[i].unchanged)
                        continue;
                readers[n] = (struct reader){ join(s->local_dir, s->files[i].name), -1 };
                uploads[n] = hutch_file_upload_init();
                uploads[n].path = join(s->remote_dir, s->files[i].name);
                uploads[n].mode = s->files[i].mode;
                uploads[n].source.read = read_file;
                uploads[n].source.ctx = &readers[n];
                uploads[n].source.n = (uint64_t) s->files[i].size;
                n++;
        }
        if (n > 0)
                r = hutch_upload_files(s->client, s->agent, uploads, n, &s->call);
        for (size_t i = 0; i < n; i++) {
                if (r == 0)
                        printf("+ %s\n", uploads[i].path + strlen(s->remote_dir) + 1);
                if (readers[i].fd >= 0)
                        close(readers[i].fd);
                free(readers[i].path);
                free((char *) uploads[i].path);
        }
        s->uploaded = n;
        free(readers);
        free(uploads);
        return r;
}

int main(int argc, char **argv)
{
        const char *url = getenv("HUTCH_URL");
        struct sync s = { .call = hutch_call_init() };
        int status = 1;

        if (argc != 4) {
                fprintf(stderr, "usage: file_sync SANDBOX-ID LOCAL-DIR REMOTE-DIR\n");
                return 2;
        }
        s.local_dir = argv[2];
        s.remote_dir = argv[3];
        if (hutch_client_new(url ? url : "http://localhost:8080", getenv("HUTCH_API_KEY"), NULL,
                             &s.client)
            < 0) {
                fprintf(stderr, "file_sync: HUTCH_URL is not a valid URL\n");
                return 1;
        }
        if (list_local(&s)) {
                if (hutch_discover_execd(s.client, argv[1], &s.agent, &s.call) < 0
                    || list_remote(&s) < 0 || upload_changed(&s) < 0) {
                        fprintf(stderr, "file_sync: %s\n", s.call.error.message);
                } else {
                        printf("%zu uploaded, %zu deleted, %zu unchanged\n", s.uploaded, s.deleted,
                               s.n - s.uploaded);
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
