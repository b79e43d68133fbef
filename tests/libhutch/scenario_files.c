/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/libhutch/scenario.h"

/* Files and dirs, in and out, from and to every kind of place. */

#define LARGE (5 * 1024 * 1024 + 123)

/* A stream of bytes that can be checked anywhere. */
static unsigned char byte_at(uint64_t i)
{
        return (unsigned char) (i * 31 + (i >> 11));
}

struct made {
        uint64_t at, n;
        bool wrong;
};

static int64_t make_bytes(void *ctx, void *buf, size_t n)
{
        struct made *m = ctx;
        unsigned char *to = buf;

        if (n > m->n - m->at)
                n = (size_t) (m->n - m->at);
        for (size_t i = 0; i < n; i++)
                to[i] = byte_at(m->at + i);
        m->at += n;
        return (int64_t) n;
}

static int check_bytes(void *ctx, const void *bytes, size_t n)
{
        const unsigned char *p = bytes;
        struct made *m = ctx;

        for (size_t i = 0; i < n; i++)
                m->wrong = m->wrong || p[i] != byte_at(m->at + i);
        m->at += n;
        return 0;
}

static int large_file(void)
{
        struct made m = { .n = LARGE };
        int fd = memfd_create("large", MFD_CLOEXEC);
        char buf[65536];
        int64_t n;

        while ((n = make_bytes(&m, buf, sizeof(buf))) > 0)
                if (write(fd, buf, (size_t) n) != n)
                        return -1;
        return lseek(fd, 0, SEEK_SET) == 0 ? fd : -1;
}

static void upload(struct world *w)
{
        struct made made = { .n = LARGE }, endless = { .n = 100000 };
        struct hutch_file_upload f[5];
        char *said;

        for (size_t i = 0; i < 5; i++)
                f[i] = hutch_file_upload_init();
        f[0].path = "up/memory \"quoted\".txt";
        f[0].source.data = "hello";
        f[0].source.n = 5;
        f[0].mode = 0600;
        f[1].path = "up/deep/er/descriptor";
        f[1].source.fd = large_file();
        f[2].path = "up/callback";
        f[2].source.read = make_bytes;
        f[2].source.ctx = &made;
        f[2].source.n = LARGE;
        f[3].path = "up/unknown length";
        f[3].source.read = make_bytes;
        f[3].source.ctx = &endless;
        f[4].path = "up/empty";
        f[4].mode = 0644;
        CHECK(w, f[1].source.fd > 0);
        WORKS(w, hutch_upload_files(w->client, w->agent, f, 5, &w->call));
        (void) close(f[1].source.fd);
        said = world_output(
                w, "cd up; stat -c '%n %s %a' memory* empty; cmp callback deep/er/descriptor && "
                   "wc -c < callback; wc -c < 'unknown length'");
        CHECK(w, said);
        CHECK_TEXT(w, said, "memory \"quoted\".txt 5 600\nempty 0 644\n5243003\n100000\n");
        free(said);
}

static int64_t refuse(void *ctx, void *buf, size_t n)
{
        (void) ctx;
        (void) buf;
        (void) n;
        return -1;
}

static void upload_that_fails(struct world *w)
{
        struct hutch_file_upload f = hutch_file_upload_init();

        f.path = "never";
        f.source.read = refuse;
        CHECK(w, hutch_upload_files(w->client, w->agent, &f, 1, &w->call) == HUTCH_CANCELED);
        f.source.read = NULL;
        f.source.fd = 987; /* nobody's */
        CHECK(w, hutch_upload_files(w->client, w->agent, &f, 1, &w->call) == HUTCH_LOCAL);
        CHECK(w, w->call.error.os_errno == EBADF);
        f.source.fd = 0;
        f.path = "/proc/self/never";
        CHECK(w, hutch_upload_files(w->client, w->agent, &f, 1, &w->call) < 0);
        CHECK(w, w->call.error.http_status >= 400);
        CHECK(w, hutch_upload_files(w->client, w->agent, NULL, 0, &w->call) <= 0);
}

static void download(struct world *w)
{
        struct hutch_download d = hutch_download_init();
        struct made made = { .at = 0 };
        struct hutch_data *data;
        struct stat st;
        int fd;

        d.path = "up/memory \"quoted\".txt";
        WORKS(w, hutch_download_file(w->client, w->agent, &d, &data, &w->call));
        CHECK_TEXT(w, data->data, "hello");
        CHECK(w, data->n == 5);
        hutch_data_free(data);
        d.path = "up/callback";
        d.sink.write = check_bytes;
        d.sink.ctx = &made;
        WORKS(w, hutch_download_file(w->client, w->agent, &d, &data, &w->call));
        CHECK(w, made.at == LARGE && !made.wrong && data->n == LARGE);
        hutch_data_free(data);
        d.sink.write = NULL;
        fd = d.sink.fd = memfd_create("down", MFD_CLOEXEC);
        WORKS(w, hutch_download_file(w->client, w->agent, &d, NULL, &w->call));
        CHECK(w, fstat(fd, &st) == 0 && st.st_size == LARGE);
        (void) close(fd);
}

static void download_parts(struct world *w)
{
        struct hutch_download d = hutch_download_init();
        struct made made = { .at = 1000 };
        struct hutch_data *data;

        d.path = "up/callback";
        d.offset = 1000;
        d.length = 300000;
        d.sink.write = check_bytes;
        d.sink.ctx = &made;
        WORKS(w, hutch_download_file(w->client, w->agent, &d, NULL, &w->call));
        CHECK(w, made.at == 301000 && !made.wrong);
        made = (struct made){ .at = LARGE - 10 };
        d.offset = LARGE - 10;
        d.length = 0;
        WORKS(w, hutch_download_file(w->client, w->agent, &d, NULL, &w->call));
        CHECK(w, made.at == LARGE && !made.wrong);
        CHECK(w, world_put(w, "lines", "one\ntwo\nthree\nfour\n"));
        d = hutch_download_init();
        d.path = "lines";
        d.first_line = 2;
        d.n_lines = 2;
        WORKS(w, hutch_download_file(w->client, w->agent, &d, &data, &w->call));
        CHECK(w, strncmp(data->data, "two\nthree", 9) == 0 && data->n <= 10);
        hutch_data_free(data);
}

static int refuse_bytes(void *ctx, const void *bytes, size_t n)
{
        (void) ctx;
        (void) bytes;
        return n > 0;
}

static void download_that_fails(struct world *w)
{
        struct hutch_download d = hutch_download_init();
        struct hutch_data *data = NULL;

        d.path = "up/missing";
        CHECK(w, hutch_download_file(w->client, w->agent, &d, &data, &w->call) == HUTCH_NOT_FOUND);
        CHECK(w, !data && strstr(w->call.error.message, "missing"));
        d.path = "up/callback";
        d.sink.write = refuse_bytes;
        CHECK(w, hutch_download_file(w->client, w->agent, &d, NULL, &w->call) == HUTCH_CANCELED);
        d.sink.write = NULL;
        d.sink.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
        CHECK(w, hutch_download_file(w->client, w->agent, &d, NULL, &w->call) == HUTCH_LOCAL);
        CHECK(w, w->call.error.os_errno == ENOSPC);
        (void) close(d.sink.fd);
}

static void search_and_info(struct world *w)
{
        static const char *const names[] = { "up/empty", "up" }, *const bad[] = { "up/empty",
                                                                                  "up/missing" };
        struct hutch_paths paths = { names, 2 };
        struct hutch_search s = hutch_search_init();
        struct hutch_directory d = hutch_directory_init();
        struct hutch_file_list *list;

        s.dir = "up";
        s.pattern = "desc*";
        WORKS(w, hutch_search_files(w->client, w->agent, &s, &list, &w->call));
        CHECK(w, list->n == 1 && strstr(list->items[0]->path, "deep/er/descriptor"));
        CHECK(w, list->items[0]->size == LARGE && list->items[0]->modified_at > 0);
        hutch_file_list_free(list);
        s.pattern = NULL;
        WORKS(w, hutch_search_files(w->client, w->agent, &s, &list, &w->call));
        CHECK(w, list->n == 5);
        hutch_file_list_free(list);
        WORKS(w, hutch_get_file_info(w->client, w->agent, &paths, &list, &w->call));
        CHECK(w, list->n == 2 && list->items[0]->size == 0 && list->items[0]->mode == 0644);
        CHECK(w, strcmp(list->items[1]->type, "directory") == 0);
        hutch_file_list_free(list);
        paths.items = bad;
        CHECK(w,
              hutch_get_file_info(w->client, w->agent, &paths, &list, &w->call) == HUTCH_NOT_FOUND);
        d.path = "up";
        WORKS(w, hutch_list_directory(w->client, w->agent, &d, &list, &w->call));
        CHECK(w, list->n == 5);
        hutch_file_list_free(list);
        d.depth = 3;
        WORKS(w, hutch_list_directory(w->client, w->agent, &d, &list, &w->call));
        CHECK(w, list->n == 7);
        hutch_file_list_free(list);
}

static void changes(struct world *w)
{
        struct hutch_permission dir = { .path = "new/dir", .mode = 0750 };
        struct hutch_permission mode = { .path = "new/b", .mode = 0604 };
        struct hutch_move move = { "new/a", "new/b" };
        struct hutch_replace replace = hutch_replace_init();
        static const char *const files[] = { "new/b", "new/missing" }, *const dirs[] = { "new" };
        struct hutch_paths paths = { files, 2 };
        char *said;

        WORKS(w, hutch_make_directories(w->client, w->agent, &dir, 1, &w->call));
        CHECK(w, world_put(w, "new/a", "one two one"));
        WORKS(w, hutch_move_files(w->client, w->agent, &move, 1, &w->call));
        WORKS(w, hutch_set_permissions(w->client, w->agent, &mode, 1, &w->call));
        replace.path = "new/b";
        replace.old_text = "one";
        replace.new_text = "three";
        WORKS(w, hutch_replace_in_files(w->client, w->agent, &replace, 1, &w->call));
        CHECK(w, replace.replaced == 2 || replace.replaced == -1);
        said = world_output(w, "cat new/b; stat -c ' %a' new/b new/dir");
        CHECK(w, said);
        CHECK_TEXT(w, said, "three two three 604\n 750\n");
        free(said);
        CHECK(w, world_put(w, "new/a", "x"));
        CHECK(w, hutch_move_files(w->client, w->agent, &move, 1, &w->call) < 0);
        WORKS(w, hutch_delete_files(w->client, w->agent, &paths, &w->call));
        paths = (struct hutch_paths){ dirs, 1 };
        CHECK(w, hutch_delete_files(w->client, w->agent, &paths, &w->call) < 0);
        WORKS(w, hutch_delete_directories(w->client, w->agent, &paths, &w->call));
        said = world_output(w, "test ! -e new && echo gone");
        CHECK(w, said);
        free(said);
}

static void archives(struct world *w)
{
        struct hutch_archive_out out = hutch_archive_out_init();
        struct hutch_archive_in in = hutch_archive_in_init();
        struct hutch_data *tar;
        char *said;

        out.path = "up";
        WORKS(w, hutch_download_archive(w->client, w->agent, &out, &tar, &w->call));
        CHECK(w, tar->n > 2 * LARGE && tar->n % 512 == 0);
        in.path = "again";
        in.source.data = tar->data;
        in.source.n = tar->n;
        WORKS(w, hutch_upload_archive(w->client, w->agent, &in, &w->call));
        CHECK(w, in.entries >= 5 && in.bytes > 2 * LARGE);
        said = world_output(w, "find again -name callback | xargs cmp up/callback && echo same");
        CHECK(w, said);
        CHECK_TEXT(w, said, "same\n");
        free(said);
        in.source.data = "this is no archive, that is for sure";
        in.source.n = 36;
        CHECK(w, hutch_upload_archive(w->client, w->agent, &in, &w->call) < 0);
        hutch_data_free(tar);
}

const struct step file_steps[] = {
        { "upload from memory, descriptors and callbacks", upload },
        { "an upload that fails", upload_that_fails },
        { "download to memory, a descriptor and a callback", download },
        { "parts of files", download_parts },
        { "a download that fails", download_that_fails },
        { "search, information, dirs", search_and_info },
        { "move, change, replace, delete", changes },
        { "archives", archives },
        { NULL },
};
