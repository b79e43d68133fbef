/* SPDX-License-Identifier: Apache-2.0 */

/* What others have put where all could meet: 62, 66, 69. A neighbour has made all of it by the names
 * below ("bomb meeting-places") and keeps it; so does a process on the host. */

#include "probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "meeting.h"

static long connect_abstract(void)
{
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        memcpy(to.sun_path + 1, MEETING, sizeof(MEETING) - 1);
        return fd < 0 ? outcome(-1)
                      : outcome(connect(fd, (struct sockaddr *) &to,
                                        offsetof(struct sockaddr_un, sun_path) + sizeof(MEETING)));
}

static long open_queue(void)
{
        return outcome(mq_open("/" MEETING, O_RDONLY));
}

static long open_memory(void)
{
        return outcome(shmget(MEETING_KEY, 0, 0));
}

static long open_semaphores(void)
{
        return outcome(semget(MEETING_KEY, 0, 0));
}

static long open_messages(void)
{
        return outcome(msgget(MEETING_KEY, 0));
}

/* By index, which needs no key. */
static long any_memory(void)
{
        struct shmid_ds ds;

        for (int i = 0; i < 1024; i++)
                if (shmctl(i, SHM_STAT_ANY, &ds) >= 0)
                        return i;
        return outcome(-1);
}

static long listed(const char *path)
{
        FILE *f = fopen(path, "re");
        char line[512];
        long lines = -1; /* the first one has the titles */

        if (!f)
                return outcome(-1);
        while (fgets(line, sizeof(line), f))
                lines++;
        (void) fclose(f);
        return lines > 0 ? lines : -ENODATA;
}

static long any_listed(void)
{
        static const char *const files[] = { "/proc/sysvipc/shm", "/proc/sysvipc/sem",
                                             "/proc/sysvipc/msg" };

        return try_each(files, COUNT(files), listed);
}

static long open_shared_file(void)
{
        return try_open("/dev/shm/" MEETING, O_RDONLY);
}

static long any_shared_file(void)
{
        DIR *d = opendir("/dev/shm");
        long n = 0;

        if (!d)
                return outcome(-1);
        for (const struct dirent *e; (e = readdir(d));)
                n += e->d_name[0] != '.';
        (void) closedir(d);
        return n > 0 ? n : -ENODATA;
}

static const struct probe probes[] = {
        { 62, "abstract-socket", connect_abstract, INSIDE, { ECONNREFUSED } },
        { 66, "mq_open", open_queue, INSIDE, { ENOENT } },
        { 66, "shmget", open_memory, INSIDE, { ENOENT } },
        { 66, "semget", open_semaphores, INSIDE, { ENOENT } },
        { 66, "msgget", open_messages, INSIDE, { ENOENT } },
        { 66, "SHM_STAT_ANY", any_memory, INSIDE, { EINVAL } },
        { 66, "sysvipc", any_listed, INSIDE, { ENODATA } },
        { 69, "dev-shm-file", open_shared_file, INSIDE, { ENOENT } },
        { 69, "dev-shm-any", any_shared_file, INSIDE, { ENODATA } },
};

const struct probe_theme theme_ipc = THEME(probes);
