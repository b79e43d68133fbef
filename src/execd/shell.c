/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A persistent shell for a session.
 *
 * The problem. The runs of a session share one shell, so the shell must not end with a run. Then neither
 * the exit of a process nor the end of its output says that a run is over; the shell itself has to report
 * it, over a channel that no run can close, fill or fake by accident.
 *
 * The process is `bash -s` (or `sh -s`), below a supervisor like every command. For each run the agent
 * writes two files into a private directory (shell_script.h): `run`, the command as the client gave it, and
 * `step`, what the shell has to do around it. Then it sends one line to the shell's standard input, which
 * sources `step`.
 *
 *                  stdin   ". step"                      one line for each run
 *         agent ── stdout  output of the runs
 *                  stderr  records, and whatever the shell itself prints between runs
 *
 * `step` sources `run` with descriptor 0 on /dev/null and 1 and 2 on the output pipe, saves the exported
 * variables into a file, and prints a record to the shell's own stderr: the run is over.
 *
 * Why stderr. A FIFO in the directory vanishes when someone cleans up /tmp, and a further descriptor would
 * be inherited by everything the shell starts. While a run is in progress, the shell keeps its own stderr
 * aside under a number that is closed on exec (as all shells do for a redirected `.`): commands have only 0,
 * 1 and 2 and cannot reach it. Afterwards the shell restores its three descriptors, whatever the run did to
 * them. A record begins and ends with a NUL byte and carries random digits made for this run
 * (shell_record.h), so traces (`set -x`, `set -v`), warnings and records of other runs are ignored.
 *
 * Order of steps of a run:
 *
 *         1. shell_run: check the private directory, write `run` and `step`, start a shell if there is none
 *         2. discard what was printed since the last run; send the line; set the timeout
 *         3. the record arrives on stderr: note the exit code, the directory and which file holds the
 *            saved variables; drain what is still in the output pipe (process_drain)
 *         4. process_drained: run_ended; the shell waits for the next line
 *
 * When the shell ends first, the run ends with the status of the shell, or with the exit code of the record
 * if that had arrived. The next run starts a fresh shell, which sources the variables that were saved by the
 * last complete run: they are written to two files in turn, so one of them is always complete. A fresh
 * shell reports when it has done that. One that ends before was ended by those variables (in POSIX mode bash
 * exits at an assignment to a read-only variable such as UID): they are forgotten.
 *
 * A run can make a shell useless, for example with a function named `command`. Then its record does not
 * come, and the run lasts until its timeout, which kills the shell and everything below it.
 */

#include "execd/shell.h"

#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/launch.h"
#include "os/fd.h"

/* --- callbacks of the process --- */

static void process_output(void *owner, enum process_stream stream, char *p, size_t n)
{
        struct shell *sh = owner;

        if (stream == PROCESS_STDOUT && sh->busy)
                sh->ops->output(sh, str_of(p, n));
        if (stream != PROCESS_STDERR || !shell_record_feed(&sh->_record, str_of(p, n)))
                return;
        if (sh->_record.saved)
                shell_script_saved(&sh->_script);
        if (sh->_record.cwd) {
                free(sh->_cwd);
                sh->_cwd = xstrndup_str(str_from(sh->_record.cwd));
        }
        process_drain(sh->_process);
}

/* A shell that was killed meanwhile is of no use for the next run: `ended` follows. */
static void process_drained(void *owner)
{
        struct shell *sh = owner;
        struct process_result r = { .status = sh->_record.status << 8 };

        if (sh->_process->killed || !sh->busy)
                return;
        process_set_timeout(sh->_process, 0);
        process_resume_output(sh->_process);
        sh->busy = false;
        sh->ops->run_ended(sh, &r);
}

static void drop_process(struct shell *sh)
{
        struct process *proc = TAKE_PTR(sh->_process);

        sh->_stdin = fd_close(sh->_stdin);
        if (proc)
                process_release(proc);
}

/* The shell may not survive the saving of its variables (`ulimit -f`): then the record has the exit code. */
static void process_ended(void *owner, const struct process_result *r)
{
        struct shell *sh = owner;
        struct process_result result = *r;

        if (sh->_record.status >= 0 && !sh->_process->killed)
                result = (struct process_result){ .status = sh->_record.status << 8 };
        if (sh->_fresh && !sh->_record.begun && r->error == 0 && WIFEXITED(r->status))
                shell_script_forget(&sh->_script);
        drop_process(sh);
        if (sh->busy) {
                sh->busy = false;
                sh->ops->run_ended(sh, &result);
        }
        sh->ops->gone(sh);
}

static const struct process_ops process_ops = {
        .output = process_output,
        .drained = process_drained,
        .ended = process_ended,
};

/* --- a run --- */

/* The directory where the last run ended, if it still can be entered; else the default one. */
static int check_cwd(struct shell *sh, struct arena *arena)
{
        struct stat st;
        const char *cwd;
        struct err e;

        if (stat(sh->_cwd, &st) == 0 && S_ISDIR(st.st_mode) && access(sh->_cwd, X_OK) == 0)
                return 0;
        if (launch_cwd(sh->_agent, arena, STR_NULL, &cwd, &e) < 0)
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

/* The pipe is empty and at least a page large: the line fits, or the shell is gone. */
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

static void kill_process(struct shell *sh)
{
        if (sh->_process)
                process_kill(sh->_process);
        drop_process(sh);
}

static int begin_run(struct shell *sh, const struct shell_run *r)
{
        bool fresh = sh->_fresh = !sh->_process;
        char nonce[ID_HEX_LEN + 1];
        int error = shell_script_check(&sh->_script);

        if (error == 0 && fresh)
                error = check_cwd(sh, r->arena);
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
        if (error == 0 && fresh)
                error = start_process(sh, r->arena);
        if (error < 0)
                return error;
        process_read_now(sh->_process); /* printed between the runs: discarded */
        error = send_line(sh);
        if (error < 0)
                kill_process(sh);
        return error;
}

int shell_run(struct shell *sh, const struct shell_run *r)
{
        int error;

        ASSERT(!sh->busy);
        error = begin_run(sh, r);
        if (error == -EPIPE) /* the shell ended between two runs; its report has not arrived yet */
                error = begin_run(sh, r);
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

/* --- lifetime --- */

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
        kill_process(sh);
        shell_script_done(&sh->_script);
        shell_record_done(&sh->_record);
        free(sh->_cwd);
}
