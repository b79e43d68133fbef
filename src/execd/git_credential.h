/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_GIT_CREDENTIAL_H
#define HUTCH_EXECD_GIT_CREDENTIAL_H

/*
 * A credential for git that is in the agent's memory and nowhere else.
 *
 *         POST /git/credential {"host":"github.com","username":"…","password":"…"}
 *                  -> {"socket":"/tmp/hutch-git-AbCdEf/s"}
 *
 * Git has a helper of its own that asks a socket, git-credential-cache(1); the agent listens on one and
 * answers as that helper's daemon would, so no program of ours has to be in the image:
 *
 *         git config --global credential.https://github.com.helper 'cache --socket=/tmp/hutch-git-AbCdEf/s'
 *
 * It answers `get` for that one host over https and takes nothing else: what git wants to store or to
 * erase is heard and forgotten. The socket is in a dir that only the agent's user, as which commands run,
 * may enter. Whoever may run git there may have the credential: that is what it is for. It is gone with the agent;
 * another one takes its place, an empty password ends it.
 */

#include "base/list.h"
#include "base/secret.h"
#include "base/str.h"

struct agent;
struct git_listener;

struct git_credential {
        struct agent *agent;
        struct secret *password; /* NULL: none */
        char *host, *username;
        struct git_listener *listener; /* NULL: nobody can ask */
        struct list clients;
        size_t n_clients;
};

void git_credential_init(struct git_credential *g, struct agent *a);

/* Wipes it. The loop has to turn before the memory of the agent may go. */
void git_credential_close(struct git_credential *g);

/* What git's helper sends: lines of name=value. Parsed as far as it concerns us; views into the text. */
struct git_request {
        struct str action, protocol, host;
};

#define GIT_REQUEST_MAX (16 * KiB)

/* -EINVAL if it is not such lines. */
int git_request_parse(struct str text, struct git_request *ret) must_check;

#endif
