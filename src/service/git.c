/* SPDX-License-Identifier: Apache-2.0 */

/* A git identity in a sandbox. Values go by variables: a command line can be read by everybody in the
 * sandbox, and would have to be quoted. */

#include "base/base.h"
#include "service/service_impl.h"

#define NO_GIT 65 /* a status of ours: git itself has 0, 1, 5 and those of signals here */

static const char script[] =
        "command -v git >/dev/null 2>&1 || exit 65\n"
        "git config --global user.name \"$HUTCH_GIT_NAME\" </dev/null &&\n"
        "git config --global user.email \"$HUTCH_GIT_EMAIL\" </dev/null || exit\n"
        "[ -n \"$HUTCH_GIT_SOCKET\" ] || exit 0\n"
        "git config --global --replace-all \"credential.https://$HUTCH_GIT_HOST.helper\" \\\n"
        "        \"cache --socket=$HUTCH_GIT_SOCKET\" </dev/null\n";

void git__command(const struct git_identity *git, const char *socket, struct agent_exec *ret,
                  struct json_pair env[static GIT_VARIABLES])
{
        env[0] = (struct json_pair){ STR("HUTCH_GIT_NAME"), git->name };
        env[1] = (struct json_pair){ STR("HUTCH_GIT_EMAIL"), git->email };
        env[2] = (struct json_pair){ STR("HUTCH_GIT_SOCKET"), str_from(socket) };
        env[3] = (struct json_pair){ STR("HUTCH_GIT_HOST"), STR(GIT_HOST) };
        ret->command = str_of(script, sizeof(script) - 1);
        ret->env = (struct json_map){ env, GIT_VARIABLES };
        ret->out_max = 16 * KiB;
}

int git__result(const struct service_exec *x, int result, struct err *e)
{
        int status = x->exec.exit_code;

        if (result < 0) {
                *e = x->req.err;
                (void) err_wrap(e, "set up git");
                return result;
        }
        if (status == 0)
                return 0;
        if (status == NO_GIT)
                return err_set(e, ERR_UNSUPPORTED,
                               "set up git: there is no git in the image; choose one that has it, "
                               "or leave out gitConfig");
        return err_set(e, ERR_UNAVAILABLE, "set up git: git config failed with status %d", status);
}
