/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_GIT_CREDENTIAL_H
#define HUTCH_EXECD_GIT_CREDENTIAL_H

/*
 * A credential for git, held only in the memory of the agent.
 *
 *         POST /git/credential {"host":"github.com","username":"…","password":"…"}
 *                  -> {"socket":"/tmp/hutch-git-AbCdEf/s"}
 *
 * Git comes with a helper that queries a socket, git-credential-cache(1). The agent listens on a socket and
 * replies as that helper's daemon does, so the image needs no program of Hutch:
 *
 *         git config --global credential.https://github.com.helper 'cache --socket=/tmp/hutch-git-AbCdEf/s'
 *
 * The agent serves `get` for that one host over https; requests to store or erase are read and ignored. The
 * socket is in a directory that only the agent's user, as which commands run, may enter: any command of the
 * sandbox may use the credential, which is its purpose. It is gone with the agent. A new credential replaces
 * it, an empty password removes it.
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
        struct git_listener *listener; /* NULL: no socket yet */
        struct list clients;
        size_t n_clients;
};

void git_credential_init(struct git_credential *g, struct agent *a);

/* Wipes the credential. The loop must turn once more before the memory is freed. */
void git_credential_close(struct git_credential *g);

/* What git's helper sends: lines of name=value. Members that are not listed are ignored; views into the text. */
struct git_request {
        struct str action, protocol, host;
};

#define GIT_REQUEST_MAX (16 * KiB)

/* -EINVAL for anything else. */
int git_request_parse(struct str text, struct git_request *ret) must_check;

#endif
