/* SPDX-License-Identifier: Apache-2.0 */

/* A git identity in a sandbox: the agent gets the token, then a command configures git. Values are passed as environment
 * variables: every process in the sandbox can read a command line, and values on it would have to be quoted. */

#include "base/base.h"
#include "service/ensure_impl.h"

#define GIT_TIMEOUT (30 * USEC_PER_SEC)
#define NO_GIT      65 /* our status; git itself uses 0, 1, 5 and those of signals here */

/* The only host that gets the token. Otherwise any host that git is made to contact would get it. */
#define GIT_HOST "github.com"
#define GIT_USER "x-access-token" /* the user name that the host expects with a token */

static const char script[] =
        "command -v git >/dev/null 2>&1 || exit 65\n"
        "git config --global user.name \"$HUTCH_GIT_NAME\" </dev/null &&\n"
        "git config --global user.email \"$HUTCH_GIT_EMAIL\" </dev/null || exit\n"
        "[ -n \"$HUTCH_GIT_SOCKET\" ] || exit 0\n"
        "git config --global --replace-all \"credential.https://$HUTCH_GIT_HOST.helper\" \\\n"
        "        \"cache --socket=$HUTCH_GIT_SOCKET\" </dev/null\n";

static void deleted(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.command.req.op);

        (void) result; /* the service retries the delete; the error to report is git's */
        e->inner = NULL;
        e->x->id[0] = '\0';
        e->x->created = false;
        ensure__end(e, e->result, &e->err);
}

/* A new sandbox without its git identity is not left behind: the owner could not tell it from a complete one. */
static void git_failed(struct ensure_op *e, int result, const struct err *err)
{
        if (!e->x->created) {
                ensure__end(e, result, err);
                return;
        }
        e->over = true;
        e->result = result;
        e->err = *err;
        ensure__step_begin(e, &e->u.command.req.op, deleted);
        e->u.command.caller = e->x->caller;
        e->u.command.id = str_from(e->x->id);
        service_delete(e->service, &e->u.command);
}

static void configured(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.exec.req.op);
        int status = e->u.exec.exec.exit_code;
        struct err err = e->u.exec.req.err;

        if (result < 0)
                (void) err_wrap(&err, "set up git");
        else if (status == NO_GIT)
                result =
                        err_set(&err, ERR_UNSUPPORTED,
                                "set up git: there is no git in the image; choose one that has it, "
                                "or leave out gitConfig");
        else if (status != 0)
                result = err_set(&err, ERR_UNAVAILABLE,
                                 "set up git: git config failed with status %d", status);
        agent_exec_done(&e->u.exec.exec);
        if (!ensure__step_done(e))
                return;
        if (result < 0)
                git_failed(e, result, &err);
        else
                ensure__end(e, 0, NULL);
}

/* Without a socket, credentials stay as they are. */
static void configure(struct ensure_op *e)
{
        const struct git_identity *git = e->x->git;
        struct service_exec *x = &e->u.exec;

        ensure__step_begin(e, &x->req.op, configured);
        e->git_env[0] = (struct json_pair){ STR("HUTCH_GIT_NAME"), git->name };
        e->git_env[1] = (struct json_pair){ STR("HUTCH_GIT_EMAIL"), git->email };
        e->git_env[2] = (struct json_pair){ STR("HUTCH_GIT_SOCKET"), str_from(e->git_socket) };
        e->git_env[3] = (struct json_pair){ STR("HUTCH_GIT_HOST"), STR(GIT_HOST) };
        x->exec.command = str_of(script, sizeof(script) - 1);
        x->exec.env = (struct json_map){ e->git_env, GIT_VARIABLES };
        x->exec.out_max = 16 * KiB;
        x->exec.req.timeout = GIT_TIMEOUT;
        x->caller = e->x->caller;
        x->id = str_from(e->x->id);
        service_exec(e->service, x);
}

static void credential_set(struct op *op, int result)
{
        struct ensure_op *e = container_of(op, struct ensure_op, u.git.req.op);
        struct err err = e->u.git.req.err;

        if (!ensure__step_done(e))
                return;
        if (result == ERR_RETURN(ERR_NOT_FOUND))
                result =
                        err_set(&err, ERR_UNSUPPORTED,
                                "the agent of this sandbox cannot keep a token for git; create the "
                                "sandbox anew, or leave out gitConfig.token");
        if (result < 0) {
                git_failed(e, result, &err);
                return;
        }
        memcpy(e->git_socket, e->u.git.git.socket, sizeof(e->git_socket));
        configure(e);
}

void ensure__set_git(struct ensure_op *e)
{
        const struct git_identity *git = e->x->git;
        struct service_git_credential *x = &e->u.git;

        if (!git) {
                ensure__end(e, 0, NULL);
                return;
        }
        if (git->secret_token.n == 0) {
                configure(e);
                return;
        }
        ensure__step_begin(e, &x->req.op, credential_set);
        x->caller = e->x->caller;
        x->id = str_from(e->x->id);
        x->git.host = STR(GIT_HOST);
        x->git.username = STR(GIT_USER);
        x->git.secret_password = git->secret_token;
        x->git.req.timeout = GIT_TIMEOUT;
        service_set_git_credential(e->service, x);
}
