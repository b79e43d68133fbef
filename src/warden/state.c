/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/state.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/codec.h"
#include "os/fd.h"
#include "os/memfd.h"
#include "os/virtual_file.h"

#define MAGIC_STATE 0x31535748U /* "HWS1", little-endian */
#define MAGIC_END   0x31455748U /* "HWE1" */
#define FILE_MAX    256

#define RECORD "record"
#define STATE  "state"
#define END    "end"
#define FRESH  "fresh" /* until it is complete */

/* --- processes --- */

int state_boot(char ret[static STATE_BOOT_LEN + 1])
{
        ssize_t n = virtual_file_read("/proc/sys/kernel/random/boot_id", ret, STATE_BOOT_LEN + 1);

        if (n < 0)
                return (int) n;
        return n == STATE_BOOT_LEN ? 0 : -EBADMSG;
}

/* The program name may contain anything, so the last bracket ends it. The start time is the 20th word
 * behind it. */
int state_start_time(pid_t pid, uint64_t *ret)
{
        char path[64], text[KiB];
        struct str rest, word = STR("");
        const char *bracket;
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        n = virtual_file_read(path, text, sizeof(text));
        if (n < 0)
                return n == -ENOENT ? -ESRCH : (int) n;
        bracket = memrchr(text, ')', (size_t) n);
        if (!bracket || bracket + 2 > text + n)
                return -EBADMSG;
        rest = str_of(bracket + 2, (size_t) (text + n - bracket - 2));
        for (int i = 0; i < 20; i++)
                if (!str_split(&rest, ' ', &word))
                        return -EBADMSG;
        return parse_u64_max(word, UINT64_MAX, ret);
}

/* The descriptor first: if the pid still has the recorded start time afterwards, the descriptor is of that
 * process. */
int state_adopt(const struct instance_state *s, int *ret_pidfd)
{
        scoped(fd_closep) int fd = -EBADF;
        char boot[STATE_BOOT_LEN + 1];
        uint64_t start = 0;
        int r = state_boot(boot);

        if (r == 0 && strcmp(boot, s->boot) != 0)
                r = -ESRCH;
        if (r < 0)
                return r;
        fd = (int) syscall(SYS_pidfd_open, s->pid, 0);
        if (fd < 0)
                return errno == EINVAL ? -ESRCH : -errno; /* a thread, not a process */
        r = state_start_time(s->pid, &start);
        if (r == 0 && start != s->start_time)
                r = -ESRCH;
        if (r == 0 && poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) == 1)
                r = -ESRCH; /* exited; a zombie, perhaps */
        if (r == 0)
                *ret_pidfd = TAKE_FD(fd);
        return r;
}

/* --- writing --- */

/* Takes its name when it is complete. */
static int write_file(int dir, const char *name, const struct buf *b)
{
        scoped(fd_closep) int fd = -EBADF;
        ssize_t n;

        if (buf_failed(b))
                return -ENOMEM;
        fd = openat(dir, FRESH, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        n = write(fd, buf_str(b).p, b->n);
        if (n >= 0 && (size_t) n < b->n)
                return -ENOSPC;
        return n < 0 || renameat(dir, FRESH, dir, name) < 0 ? -errno : 0;
}

static int put_record(int dir, int record, uint64_t *ret_size)
{
        scoped(fd_closep) int fd = -EBADF;
        struct stat st;
        off_t pos = 0;

        if (!memfd_is_sealed(record))
                return -EINVAL;
        if (fstat(record, &st) < 0)
                return -errno;
        if (st.st_size < 0 || st.st_size > (off_t) WARDEN_RECORD_MAX)
                return -EINVAL;
        fd = openat(dir, RECORD, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        while (pos < st.st_size) {
                ssize_t n = sendfile(fd, record, &pos, (size_t) (st.st_size - pos));

                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
        }
        *ret_size = (uint64_t) st.st_size;
        return 0;
}

int state_write(int dir, const struct instance_state *s, int record)
{
        scoped(buf_done) struct buf b;
        uint64_t record_size = 0;
        int r = put_record(dir, record, &record_size);

        buf_init(&b, FILE_MAX);
        if (r < 0)
                return r;
        codec_put_u32(&b, MAGIC_STATE);
        codec_put_cstr(&b, s->boot);
        codec_put_u32(&b, (uint64_t) s->pid);
        codec_put_u64(&b, s->start_time);
        codec_put_u32(&b, s->uid_first);
        codec_put_u8(&b, s->image);
        codec_put_u8(&b, s->network);
        codec_put_u32(&b, s->net_index);
        codec_put_u64(&b, s->memory);
        codec_put_u64(&b, s->cpu_millis);
        codec_put_u64(&b, s->pids);
        codec_put_u64(&b, record_size);
        return write_file(dir, STATE, &b);
}

int state_write_end(int dir, const struct instance_status *end)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, FILE_MAX);
        codec_put_u32(&b, MAGIC_END);
        instance_status_put(&b, end);
        return write_file(dir, END, &b);
}

/* --- reading --- */

static int read_file(int dir, const char *name, struct buf *b)
{
        scoped(fd_closep) int fd =
                openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        char text[FILE_MAX];
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = read(fd, text, sizeof(text));
        if (n < 0)
                return -errno;
        buf_add(b, text, (size_t) n);
        return 0;
}

static bool take_state(struct codec_reader *in, struct instance_state *s)
{
        const bool ours = codec_u32(in) == MAGIC_STATE;
        const char *boot = codec_cstr(in);
        const uint64_t pid = codec_u32(in);

        s->start_time = codec_u64(in);
        s->uid_first = codec_u32(in);
        s->image = (enum plan_image) codec_u8(in);
        s->network = (enum plan_network) codec_u8(in);
        s->net_index = codec_u32(in);
        s->memory = codec_u64(in);
        s->cpu_millis = codec_u64(in);
        s->pids = codec_u64(in);
        s->record_size = codec_u64(in);
        if (!ours || !codec_complete(in) || strlen(boot) != STATE_BOOT_LEN || pid <= 1
            || pid > INT32_MAX || s->network >= PLAN_NETWORK_MAX_)
                return false;
        memcpy(s->boot, boot, sizeof(s->boot));
        s->pid = (pid_t) pid;
        return true;
}

/* The uid range must be ours, and the record complete. */
int state_read(int dir, const struct plan_uids *uids, struct instance_state *ret)
{
        scoped(buf_done) struct buf b;
        scoped(arena_done) struct arena a;
        struct instance_state s = { 0 };
        struct stat record;
        uint32_t from;
        int r;

        buf_init(&b, FILE_MAX);
        arena_init_small(&a, 4 * KiB, KiB);
        r = read_file(dir, STATE, &b);
        if (r < 0)
                return r == -ENOENT || r == -ELOOP ? -EBADMSG : r;
        if (!take_state(&(struct codec_reader){ buf_str(&b), &a, false }, &s))
                return -EBADMSG;
        from = s.uid_first - uids->base;
        if (s.uid_first < uids->base || from % PLAN_UIDS != 0 || from / PLAN_UIDS >= uids->ranges)
                return -EBADMSG;
        if (fstatat(dir, RECORD, &record, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(record.st_mode)
            || (uint64_t) record.st_size != s.record_size)
                return -EBADMSG;
        *ret = s;
        return 0;
}

int state_read_end(int dir, struct instance_status *ret)
{
        scoped(buf_done) struct buf b;
        struct codec_reader in = { 0 };
        struct instance_status s;
        int r;

        buf_init(&b, FILE_MAX);
        r = read_file(dir, END, &b);
        if (r < 0)
                return r;
        in.left = buf_str(&b);
        in.failed = codec_u32(&in) != MAGIC_END;
        s = instance_status_take(&in);
        if (!codec_complete(&in) || instance_is_alive(&s))
                return -ENOENT;
        *ret = s;
        return 0;
}

int state_open_record(int dir, int *ret_fd)
{
        int fd = openat(dir, RECORD, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}
