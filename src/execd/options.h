/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_OPTIONS_H
#define HUTCH_EXECD_OPTIONS_H

/* The command line of hutch-execd. */

#include "base/log.h"
#include "base/options.h"
#include "os/socket.h"

#define EXECD_LISTEN_MAX 4
#define EXECD_MOUNTS_MAX 64

struct execd_options {
        struct sock_addr listen[EXECD_LISTEN_MAX];
        size_t n_listen;
        int listen_fd;   /* inherited, or -EBADF */
        int socket_mode; /* of unix sockets, set when they accept; -EINVAL: by the umask */
        int ready_fd;    /* gets a byte when the agent serves, and is closed; or -EBADF */
        int token_fd;    /* to read the access token from, or -EBADF */
        int cgroup_fds;  /* the first of those for cgroups, or 0 */
        struct str mounted[EXECD_MOUNTS_MAX]; /* marks: see os/mount_identity.h */
        size_t n_mounted;
        struct str workspace, state_dir;
        uint64_t output_max, entrypoint_max;
        enum log_level log_level;
        enum log_format log_format;
        bool access_log;
        bool stay;           /* after the entrypoint has ended */
        bool ignore_signals; /* take no signals */
        const char *relay;   /* socket path, see execd/relay.h; or NULL */
        bool seal;           /* run from a sealed copy in memory */
        char **entrypoint;   /* NULL-terminated, or NULL */
};

enum options_result execd_options_parse(int argc, char **argv, struct execd_options *ret,
                                        struct buf *text);

#endif
