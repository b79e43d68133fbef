/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench_host.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/mount.h"
#include "os/memfd.h"
#include "os/walk.h"
#include "warden/data.h"
#include "warden/host_image.h"

void must(int r, const char *what)
{
        if (r >= 0)
                return;
        (void) fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, err_text(r));
        exit(1);
}

int bench_host_seal(const char *path)
{
        int from = open(path, O_RDONLY | O_CLOEXEC), fd = -EBADF;

        must(sys(from), path);
        must(memfd_sealed_copy(from, "bench", &fd), path);
        (void) close(from);
        return fd;
}

void bench_host_open(struct bench_host *g, const char *group)
{
        int root, image;

        *g = (struct bench_host){ .path = "/tmp/hutch-bench-XXXXXX", .group = group };
        must(mkdtemp(g->path) ? 0 : -errno, "create a directory");
        must(sys(unshare(CLONE_NEWNS)), "mount namespace (needs root)");
        must(mount_make_private(), "isolate");
        (void) umask(022);
        must(data_open(g->path, &g->context.data), "data directory");
        root = open("/", O_PATH | O_CLOEXEC);
        image = openat(g->context.data, DATA_HOST, O_PATH | O_CLOEXEC);
        must(host_image_fill(root, image), "image");
        (void) close(root);
        (void) close(image);
        must(cgroup_tree_open(&g->tree, "", group, 0), "cgroups");
        g->context.data_path = g->path;
        g->context.host = true;
        g->context.tree = &g->tree;
}

void bench_host_remove_tree(int at, const char *name)
{
        struct walk_remove rm;
        int r;

        walk_remove_init(&rm, at, name);
        do
                r = walk_remove_step(&rm);
        while (r > 0);
        walk_remove_done(&rm);
        must(r, name);
}

void bench_host_close(struct bench_host *g)
{
        static const char *const mounts[] = { DATA_GROUPS, DATA_MASKS, DATA_TREES };
        char path[128];

        must(cgroup_tree_remove(&g->tree, "", g->group), "cgroups");
        for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", g->path, mounts[i]);
                (void) umount2(path, MNT_DETACH);
        }
        bench_host_remove_tree(AT_FDCWD, g->path);
}
