/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/shell.h"

#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/launch.h"
#include "os/fd.h"

/* --- what the process has to say --- */

static void end_run(struct shell *sh, const struct process_result *r)
{
        sh->busy = false;
        sh->ops->run_ended(sh, r);
}

static void take_record(struct shell *sh, struct process *j)
{
        const struct shell_record *rec = &sh->_record;

        if (rec->saved)
                shell_script_saved(&sh->_script);
        if (rec->cwd) {
                free(sh->_cwd);
                sh->_cwd = xstrndup_str(str_from(rec->cwd));
        }
        process_drain(j);
}

static void process_output(struct process *j, enum process_stream stream, char *p, size_t n)
{
        struct shell *sh = j->owner;

        if (stream == PROCESS_STDOUT && sh->busy)
                sh->ops->output(sh, str_of(p, n));
        if (stream == PROCESS_STDERR && shell_record_feed(&sh->_record, str_of(p, n)))
                take_record(sh, j);
}

static struct process_result result_of(const struct shell *sh)
{
        return (struct process_result){ .status = sh->_record.status << 8 };
}

/* A shell that was killed in the meantime is of no use for the next run: its end is waited for. */
static void process_drained(struct process *j)
{
        struct shell *sh = j->owner;
        struct process_result r = result_of(sh);

        if (j->killed || !sh->busy)
                return;
        process_set_timeout(j, 0);
        process_resume_output(j);
        end_run(sh, &r);
}

static void drop_job(struct shell *sh)
{
        struct process *j = TAKE_PTR(sh->_process);

        sh->_stdin = fd_close(sh->_stdin);
        if (j)
                process_release(j);
}

/* The code of the run is known even if the shell did not survive the saving (`ulimit -f`). A shell that
 * ends before it gets to its first run does so because of what it was given: in POSIX mode bash
 * takes a read-only variable, UID say, for its end. The next one must not meet it again. */
static void process_ended(struct process *j, const struct process_result *r)
{
        struct shell *sh = j->owner;
        bool told = sh->_record.status >= 0 && !j->killed;
        struct process_result result = told ? result_of(sh) : *r;

        if (sh->_fresh && !sh->_record.begun && r->error == 0 && WIFEXITED(r->status))
                shell_script_forget(&sh->_script);
        drop_job(sh);
        if (sh->busy)
                end_run(sh, &result);
        sh->ops->gone(sh);
}

static const struct process_ops process_ops = {
        .output = process_output,
        .drained = process_drained,
        .ended = process_ended,
};

/* --- a run --- */

static bool can_be_entered(const char *path)
{
        struct stat st;

        return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && access(path, X_OK) == 0;
}

static int use_default_cwd(struct shell *sh, struct arena *arena)
{
        const char *cwd;
        struct err e;
        int r = launch_cwd(sh->_agent, arena, STR_NULL, &cwd, &e);

        if (r < 0)
                return -ENOENT;
        free(sh->_cwd);
        sh->_cwd = xstrndup_str(str_from(cwd));
        return 0;
}

static int start_process(struct shell *sh, struct arena *arena)
{
        static const struct str bash[] = { STR("bash"), STR("--noprofile"), STR("--norc"),
                                           STR("-s") };
        static const struct str posix[] = { STR("sh"), STR("-s") };
        struct process_spec spec = {
                .argv = sh->_is_bash ? launch_argv(arena, bash, ARRAY_SIZE(bash))
                                     : launch_argv(arena, posix, ARRAY_SIZE(posix)),
                .envp = environment_build(&sh->_agent->env, arena, NULL),
                .cwd = sh->_cwd,
                .pipe_stdin = true,
                .ret_stdin = &sh->_stdin,
        };

        if (!spec.argv || !spec.envp)
                return -E2BIG;
        return process_start(&sh->_agent->processes, &spec, &process_ops, sh, &sh->_process);
}

static int prepare(struct shell *sh, const struct shell_run *r)
{
        bool fresh = sh->_fresh = !sh->_process;
        char nonce[ID_HEX_LEN + 1];
        int error = shell_script_check(&sh->_script);

        if (error == 0 && fresh && !can_be_entered(sh->_cwd))
                error = use_default_cwd(sh, r->arena);
        if (error < 0)
                return error;
        if (fresh)
                sh->_is_bash = strcmp(launch_shell(sh->_agent), "bash") == 0;
        ids_hex(&sh->_agent->ids, nonce);
        shell_record_begin(&sh->_record, nonce);
        error = shell_script_write(&sh->_script, &(struct shell_step){ .command = r->command,
                                                                       .cwd = r->cwd,
                                                                       .nonce = nonce,
                                                                       .fresh = fresh,
                                                                       .is_bash = sh->_is_bash,
                                                                       .initial_cwd = sh->_cwd });
        return error == 0 && fresh ? start_process(sh, r->arena) : error;
}

/* The pipe is empty, and no pipe is smaller than a page: a line goes in whole or the shell is gone. */
static int send_line(struct shell *sh)
{
        scoped(buf_done) struct buf b;
        ssize_t n;

        buf_init(&b, PIPE_BUF);
        shell_script_add_line(&sh->_script, &b);
        if (buf_failed(&b))
                return -ENAMETOOLONG;
        n = write(sh->_stdin, buf_str(&b).p, b.n);
        return n < 0 ? -errno : n == (ssize_t) b.n ? 0 : -EIO;
}

static void give_up(struct shell *sh)
{
        if (sh->_process)
                process_kill(sh->_process);
        drop_job(sh);
}

static int begin(struct shell *sh, const struct shell_run *r)
{
        int error = prepare(sh, r);

        if (error < 0)
                return error;
        process_read_now(sh->_process); /* was printed between the runs */
        error = send_line(sh);
        if (error < 0)
                give_up(sh);
        return error;
}

int shell_run(struct shell *sh, const struct shell_run *r)
{
        int error;

        ASSERT(!sh->busy);
        error = begin(sh, r);
        if (error == -EPIPE) /* it ended between two runs, and we have not heard of it yet */
                error = begin(sh, r);
        if (error < 0)
                return error;
        sh->busy = true;
        process_set_timeout(sh->_process, r->timeout);
        return 0;
}

bool shell_kill(struct shell *sh)
{
        if (sh->_process)
                process_kill(sh->_process);
        return sh->_process != NULL;
}

void shell_pause_output(struct shell *sh)
{
        if (sh->_process)
                process_pause_output(sh->_process);
}

void shell_resume_output(struct shell *sh)
{
        if (sh->_process)
                process_resume_output(sh->_process);
}

/* --- life --- */

int shell_init(struct shell *sh, struct agent *a, const char *cwd, const struct shell_ops *ops)
{
        int r;

        *sh = (struct shell){ .ops = ops, ._agent = a, ._stdin = -EBADF };
        r = shell_script_init(&sh->_script, a->config.state_dir);
        if (r < 0)
                return r;
        shell_record_init(&sh->_record);
        sh->_cwd = xstrndup_str(str_from(cwd));
        return 0;
}

void shell_done(struct shell *sh)
{
        give_up(sh);
        shell_script_done(&sh->_script);
        shell_record_done(&sh->_record);
        free(sh->_cwd);
}
