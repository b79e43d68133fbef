/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/shell_script.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

#define DIR_TEMPLATE "hutch-session-XXXXXX"
#define STEP_MAX     (128 * KiB) /* a few paths, quoted at their worst */

/* --- the private directory --- */

static int file_path(const struct shell_script *sc, const char *name, char ret[static PATH_MAX])
{
        int n = snprintf(ret, PATH_MAX, "%s/%s", sc->_dir, name);

        return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Always a new file: dash may still be reading the old one to its end, and a file of that name may have been
 * put there by another process. */
static int write_file(const struct shell_script *sc, const char *name, struct str content)
{
        scoped(fd_closep) int fd = -EBADF;
        char path[PATH_MAX];
        int r = file_path(sc, name, path);

        if (r < 0)
                return r;
        (void) unlink(path);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        while (content.n > 0) {
                ssize_t n = write(fd, content.p, content.n);

                if (n < 0)
                        return -errno;
                content = str_skip(content, (size_t) n);
        }
        return 0;
}

static const char *saved_name(int which)
{
        return which ? "state.1" : "state.0";
}

static int make_dir(struct shell_script *sc)
{
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/" DIR_TEMPLATE, sc->_state_dir);

        /* A line to the shell has one path in it, and quotes. */
        if (n >= PIPE_BUF / 2)
                return -ENAMETOOLONG;
        if (!mkdtemp(path))
                return -errno;
        free(sc->_dir);
        sc->_dir = xstrndup_str(str_from(path));
        sc->_saved = -1;
        return 0;
}

/* When someone cleans up the state directory, the name becomes free for any user, and the owner of the directory
 * decides what the shell reads. */
int shell_script_check(struct shell_script *sc)
{
        struct stat st;

        if (lstat(sc->_dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid()
            && (st.st_mode & 077) == 0)
                return 0;
        return make_dir(sc);
}

/* --- the scripts --- */

/* Appends the text as one word of the shell's language. */
static void add_word(struct buf *b, struct str s)
{
        ssize_t at;

        buf_add_char(b, '\'');
        while ((at = str_find(s, '\'')) >= 0) {
                buf_add(b, s.p, (size_t) at);
                buf_add_str(b, STR("'\\''"));
                s = str_skip(s, (size_t) at + 1);
        }
        buf_add_str(b, s);
        buf_add_char(b, '\'');
}

static void add_path(struct buf *b, const struct shell_script *sc, const char *name)
{
        char path[PATH_MAX];

        if (file_path(sc, name, path) == 0)
                add_word(b, str_from(path));
}

static void add_step(struct buf *b, const struct shell_script *sc, const struct shell_step *step)
{
        if (step->fresh && step->is_bash)
                buf_add_str(b, STR("\\command shopt -s expand_aliases\n"));
        if (step->fresh && sc->_saved >= 0) {
                buf_add_str(b, STR("\\command . "));
                add_path(b, sc, saved_name(sc->_saved));
                buf_add_char(b, '\n');
        }
        /* `command` also keeps an error in a special builtin from ending the shell. */
        if (step->fresh) {
                buf_add_str(b, STR("\\command cd -- "));
                add_word(b, str_from(step->initial_cwd));
                buf_addf(b, "\n\\command printf '\\000%s =\\000' >&2\n", step->nonce);
        }
        /* The last command of an and-list is subject to `set -e`; a first one that fails is not, and its
         * message belongs to the run. */
        if (step->cwd) {
                buf_add_str(b, STR("\\command cd -- "));
                add_word(b, str_from(step->cwd));
                buf_add_str(b, STR(" 2>&1 && "));
        }
        /* `1>&2` changes nothing, but makes the shell save its own 1, so that an `exec >file` ends with
         * the run. */
        buf_add_str(b, STR("\\command . "));
        add_path(b, sc, "run");
        buf_add_str(b, STR(" </dev/null 2>&1 1>&2\n"));
        /* Two records, because $? is gone when the variables are saved. Each is one printf, so that traces
         * appear between them and never inside; the output of a DEBUG trap goes to /dev/null. (NUL is \000
         * because a digit may follow.) */
        buf_addf(b, "{ \\command printf '\\000%s %%s\\000' \"$?\" >&2; \\command export -p >|",
                 step->nonce);
        add_path(b, sc, saved_name(sc->_saved == 0));
        buf_addf(b,
                 " && \\command printf '\\000%s +%%s\\000' \"${PWD-}\" >&2"
                 " || \\command printf '\\000%s -%%s\\000' \"${PWD-}\" >&2; } >/dev/null\n",
                 step->nonce, step->nonce);
}

/* The file that the shell saves to must not exist: ext4 flushes a file that was truncated and rewritten to the
 * disk at once, which takes longer than the rest of a short run. */
int shell_script_write(struct shell_script *sc, const struct shell_step *step)
{
        scoped(buf_done) struct buf b;
        char path[PATH_MAX];
        int r = file_path(sc, saved_name(sc->_saved == 0), path);

        buf_init(&b, STEP_MAX);
        if (r < 0)
                return r;
        (void) unlink(path);
        r = write_file(sc, "run", step->command);
        if (r < 0)
                return r;
        add_step(&b, sc, step);
        return buf_failed(&b) ? -ENAMETOOLONG : write_file(sc, "step", buf_str(&b));
}

void shell_script_add_line(const struct shell_script *sc, struct buf *b)
{
        buf_add_str(b, STR("\\command . "));
        add_path(b, sc, "step");
        buf_add_char(b, '\n');
}

void shell_script_forget(struct shell_script *sc)
{
        sc->_saved = -1;
}

/* The file was created with the umask of the run. */
void shell_script_saved(struct shell_script *sc)
{
        char path[PATH_MAX];

        sc->_saved = sc->_saved == 0;
        if (file_path(sc, saved_name(sc->_saved), path) == 0)
                (void) chmod(path, 0600);
}

/* --- lifetime --- */

int shell_script_init(struct shell_script *sc, struct str state_dir)
{
        int r;

        *sc = (struct shell_script){ ._state_dir = xstrndup_str(state_dir) };
        r = make_dir(sc);
        if (r < 0)
                shell_script_done(sc);
        return r;
}

void shell_script_done(struct shell_script *sc)
{
        static const char *const names[] = { "run", "step", "state.0", "state.1" };
        char path[PATH_MAX];

        for (size_t i = 0; sc->_dir && i < ARRAY_SIZE(names); i++)
                if (file_path(sc, names[i], path) == 0)
                        (void) unlink(path);
        if (sc->_dir)
                (void) rmdir(sc->_dir);
        free(sc->_dir);
        free(sc->_state_dir);
        *sc = (struct shell_script){ 0 };
}
