/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a fuzz target on the empty input and on every file of the directories given, one TAP point each.
 * A crash ends the program before its plan is fulfilled, which the runner takes for failure.
 *
 * usage: fuzz_NAME DIRECTORY...
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#include "tests/fuzz/fuzz.h"

#define INPUT_MAX (16 * MiB)

/* The target gets a copy of exactly the input's size, so that the sanitizer sees reads past it. */
static void run(struct str input)
{
        uint8_t *copy = xcalloc(1, input.n);

        if (input.n)
                memcpy(copy, input.p, input.n);
        (void) LLVMFuzzerTestOneInput(copy, input.n);
        free(copy);
}

static int run_file(int dir, const char *name)
{
        scoped(buf_done) struct buf b;
        int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
        struct stat st;
        ssize_t n;
        char *p;

        buf_init(&b, INPUT_MAX);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0 || st.st_size < 0 || !(p = buf_reserve(&b, (size_t) st.st_size))) {
                (void) close(fd);
                return -EFBIG;
        }
        n = read(fd, p, (size_t) st.st_size);
        (void) close(fd);
        if (n != st.st_size)
                return -EIO;
        run(str_of(p, (size_t) n));
        return 0;
}

static int not_hidden(const struct dirent *d)
{
        return d->d_name[0] != '.';
}

/* Returns how many files ran, or -1 if one could not be read. */
static int run_directory(const char *path, int *point)
{
        int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct dirent **names = NULL;
        int n = scandir(path, &names, not_hidden, alphasort);
        bool ok = dir >= 0 && n >= 0;

        for (int i = 0; i < n; i++) {
                int r = dir < 0 ? -ENOENT : run_file(dir, names[i]->d_name);

                printf("%s %d - %s\n", r < 0 ? "not ok" : "ok", ++*point, names[i]->d_name);
                (void) fflush(stdout);
                ok = ok && r == 0;
                free(names[i]);
        }
        free(names);
        if (dir >= 0)
                (void) close(dir);
        return ok ? n : -1;
}

int main(int argc, char **argv)
{
        int point = 0, files = 0;
        bool ok = true;

        run(STR(""));
        printf("ok %d - empty input\n", ++point);
        for (int i = 1; i < argc; i++) {
                int n = run_directory(argv[i], &point);

                ok = ok && n >= 0;
                files += n;
        }
        ok = ok && files > 0;
        printf("%s %d - all of the corpus was there (%d files)\n", ok ? "ok" : "not ok", ++point,
               files);
        printf("1..%d\n", point);
        return ok ? 0 : 1;
}
