/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_AGENT_H
#define HUTCH_AGENT_H

/* What is asked of the agent in a sandbox: commands, sessions, files, metrics, tunnels. Include hutch/hutch.h, where the rules are. */

#include <hutch/lifecycle.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the agent answers. */
int hutch_ping(struct hutch_client *client, const struct hutch_endpoint *agent,
               struct hutch_call *call);

/* --- commands --- */

enum hutch_stream {
        HUTCH_STDOUT = 1,
        HUTCH_STDERR = 2,
};

/* Output as it comes: whole lines if the server tells lines, else any pieces. Other than 0 gives up
 * the call (HUTCH_CANCELED). */
typedef int hutch_output_fn(void *data, enum hutch_stream stream, const char *bytes, size_t n);

struct hutch_command_options {
        size_t size;
        const char *command;     /* for the sandbox's shell; this or argv */
        const char *const *argv; /* program and arguments, without a shell */
        size_t n_argv;
        const char *cwd;              /* NULL: the agent's choice */
        const struct hutch_pair *env; /* besides the sandbox's */
        size_t n_env;
        int64_t timeout_ms; /* the agent kills it then; 0: never. The deadline of the call only ends the
                             * waiting */
        bool has_uid, has_gid; /* as another user; gid needs uid */
        uint32_t uid, gid;
        bool open_stdin; /* hutch_write_stdin is to come; else /dev/null */
        bool attached;   /* it is killed when this call ends, however that comes (Hutch) */

        /* Told as it comes, and then not collected. They need not both be there. */
        hutch_output_fn *output;
        /* The id, as soon as there is one: for status, stdin and signals meanwhile. */
        void (*started)(void *data, const char *id);
        void *data;
        uint64_t output_max; /* bytes collected of each stream; 0: the client's response_max */
};
HUTCH_INITIALISER_(hutch_command_options)

struct hutch_command_result {
        const char *id;
        /* Collected output; a NUL follows. Byte for byte where the server can (Hutch); where it tells
         * lines of text, those lines, each with a newline. */
        const char *out, *err;
        size_t out_n, err_n;
        bool out_truncated, err_truncated; /* there was more than output_max */
        /* What the program returned, whatever form the server told it in. -1: it was killed by a
         * signal, or the server does not say; for one that could not be started -1, 127 or 255, as
         * the server likes. `error` says what it was. */
        int exit_code;
        int signal;        /* that ended it, or 0 if none did or the server does not say */
        bool timed_out;    /* the agent's time limit did (Hutch says so) */
        const char *error; /* the server's words for a failure, or NULL */
        int64_t duration_ms;
};
void hutch_command_result_free(struct hutch_command_result *result);

/* Runs a command to its end. That it fails is no error of the call: look at exit_code. */
int hutch_run_command(struct hutch_client *client, const struct hutch_endpoint *agent,
                      const struct hutch_command_options *options,
                      struct hutch_command_result **ret, struct hutch_call *call);

/* Starts a command in the background, its output kept by the agent: only the id of the result means
 * something, and exit_code is 0. `output` is not used. */
int hutch_start_command(struct hutch_client *client, const struct hutch_endpoint *agent,
                        const struct hutch_command_options *options,
                        struct hutch_command_result **ret, struct hutch_call *call);

struct hutch_command_status {
        const char *id;
        const char *command; /* or NULL */
        bool running;
        bool has_exit_code;
        int exit_code;
        const char *error; /* or NULL */
        int64_t started_at, finished_at;
        uint64_t output_dropped; /* bytes that are no longer kept (Hutch) */
};
void hutch_command_status_free(struct hutch_command_status *status);

/* Also of a foreground command. */
int hutch_get_command_status(struct hutch_client *client, const struct hutch_endpoint *agent,
                             const char *id, struct hutch_command_status **ret,
                             struct hutch_call *call);

struct hutch_logs {
        const char *data; /* a NUL follows */
        size_t n;
        uint64_t cursor;  /* for the next call: what comes after this */
        uint64_t dropped; /* bytes that were asked for and are no longer kept */
};
void hutch_logs_free(struct hutch_logs *logs);

struct hutch_logs_query {
        size_t size;
        const char *command_id;
        uint64_t cursor; /* bytes before this are not told again */
};
HUTCH_INITIALISER_(hutch_logs_query)

/* What a background command has written so far, both streams in one. */
int hutch_get_command_logs(struct hutch_client *client, const struct hutch_endpoint *agent,
                           const struct hutch_logs_query *query, struct hutch_logs **ret,
                           struct hutch_call *call);

/* Asks it to end (SIGTERM), kills it if it does not, and returns when it is gone. */
int hutch_interrupt_command(struct hutch_client *client, const struct hutch_endpoint *agent,
                            const char *id, struct hutch_call *call);

/* Sends a signal by its number. Hutch's agents; HUTCH_NOT_FOUND or HUTCH_UNSUPPORTED of others. */
int hutch_signal_command(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const char *id, int signal, struct hutch_call *call);

/* --- bytes in and out --- */

/* Where bytes come from. The first that is set counts: read, then fd, then data. Whatever it names must
 * stay until the call is done. */
struct hutch_source {
        const void *data;
        uint64_t n; /* of data; for fd and read: so many and no fewer, or 0: to the end */
        int fd; /* from its position on; 0: none. Read in the loop's thread: for regular files */
        /* Fills buf with up to n bytes; 0 at the end, negative to give up the call. */
        int64_t (*read)(void *ctx, void *buf, size_t n);
        void *ctx;
};

/* Where bytes go: `write` if it is set, else fd if it is, else memory, which ret then gets. */
struct hutch_sink {
        int fd; /* 0: none. Written to in the loop's thread: for regular files */
        /* Takes all n bytes and returns 0, or anything else to give up the call. */
        int (*write)(void *ctx, const void *bytes, size_t n);
        void *ctx;
};

struct hutch_data {
        const char *data; /* a NUL follows; empty if the bytes went elsewhere */
        size_t n;         /* how many there were, wherever they went */
};
void hutch_data_free(struct hutch_data *data);

/* Writes to a command that was started with open_stdin, and closes it if `end`. Hutch's agents. */
struct hutch_stdin {
        size_t size;
        const char *command_id;
        struct hutch_source source;
        bool end;
};
HUTCH_INITIALISER_(hutch_stdin)
int hutch_write_stdin(struct hutch_client *client, const struct hutch_endpoint *agent,
                      const struct hutch_stdin *input, struct hutch_call *call);

/* --- sessions: a shell that keeps its folder and variables between commands --- */

struct hutch_session {
        const char *id;
};
void hutch_session_free(struct hutch_session *session);

/* cwd may be NULL; it is made if need be. */
int hutch_create_session(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const char *cwd, struct hutch_session **ret, struct hutch_call *call);

/* Of the options command, cwd, timeout_ms and the callbacks count. Both streams come as stdout. */
struct hutch_session_command {
        size_t size;
        const char *session_id;
        const struct hutch_command_options *options;
};
HUTCH_INITIALISER_(hutch_session_command)
int hutch_run_in_session(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const struct hutch_session_command *what,
                         struct hutch_command_result **ret, struct hutch_call *call);

int hutch_delete_session(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const char *id, struct hutch_call *call);

/* --- files --- */

struct hutch_file_upload {
        size_t size;
        const char *path;
        struct hutch_source source;
        unsigned mode;             /* 0644; 0: the agent's choice */
        const char *owner, *group; /* names; NULL: the agent's choice */
};
HUTCH_INITIALISER_(hutch_file_upload)

/* Writes n files, each with the folders above it, in one request of any size. The array and all in it
 * must stay until the call is done. */
int hutch_upload_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                       const struct hutch_file_upload *files, size_t n, struct hutch_call *call);

struct hutch_download {
        size_t size;
        const char *path;
        uint64_t offset, length;      /* bytes; length 0: to the end */
        uint64_t first_line, n_lines; /* from 1 on; 0: not by lines. Not with offset and length */
        struct hutch_sink sink;
};
HUTCH_INITIALISER_(hutch_download)

/* ret may be NULL if there is a sink. */
int hutch_download_file(struct hutch_client *client, const struct hutch_endpoint *agent,
                        const struct hutch_download *what, struct hutch_data **ret,
                        struct hutch_call *call);

struct hutch_file_info {
        const char *path;
        const char *type; /* "file", "directory", "symlink", "other", or NULL */
        int64_t size;
        int64_t modified_at, created_at;
        const char *owner, *group; /* or NULL */
        unsigned mode;             /* 0644 */
};

struct hutch_file_list {
        const struct hutch_file_info *const *items;
        size_t n;
};
void hutch_file_list_free(struct hutch_file_list *list);

struct hutch_search {
        size_t size;
        const char *dir;
        const char *pattern; /* a glob, held against file names; NULL: all */
};
HUTCH_INITIALISER_(hutch_search)

/* Files anywhere below a folder, by name. Folders are not told. */
int hutch_search_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                       const struct hutch_search *what, struct hutch_file_list **ret,
                       struct hutch_call *call);

struct hutch_paths {
        const char *const *items;
        size_t n;
};

/* What the paths are, links not followed, in their order. HUTCH_NOT_FOUND if one is missing. */
int hutch_get_file_info(struct hutch_client *client, const struct hutch_endpoint *agent,
                        const struct hutch_paths *paths, struct hutch_file_list **ret,
                        struct hutch_call *call);

/* Files that are missing are no error, folders are. */
int hutch_delete_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                       const struct hutch_paths *paths, struct hutch_call *call);

struct hutch_permission {
        const char *path;
        const char *owner, *group; /* NULL: as it is */
        unsigned mode;             /* 0755; 0: as it is */
};

int hutch_set_permissions(struct hutch_client *client, const struct hutch_endpoint *agent,
                          const struct hutch_permission *items, size_t n, struct hutch_call *call);

/* Makes folders, with those above them. Owner and mode are for the ones that are new. */
int hutch_make_directories(struct hutch_client *client, const struct hutch_endpoint *agent,
                           const struct hutch_permission *items, size_t n, struct hutch_call *call);

/* Removes folders with everything in them. Missing ones are no error. */
int hutch_delete_directories(struct hutch_client *client, const struct hutch_endpoint *agent,
                             const struct hutch_paths *paths, struct hutch_call *call);

struct hutch_directory {
        size_t size;
        const char *path;
        unsigned depth; /* levels; 0: 1 */
};
HUTCH_INITIALISER_(hutch_directory)

/* What is in a folder, names in order, each folder before what is in it. */
int hutch_list_directory(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const struct hutch_directory *what, struct hutch_file_list **ret,
                         struct hutch_call *call);

struct hutch_move {
        const char *from, *to;
};

/* Renames files or folders, one after the other. What exists at `to` is never replaced. */
int hutch_move_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                     const struct hutch_move *items, size_t n, struct hutch_call *call);

struct hutch_replace {
        size_t size;
        const char *path;
        const char *old_text, *new_text;
        int64_t replaced; /* how often, once the call is done; -1 if the server does not say */
};
HUTCH_INITIALISER_(hutch_replace)

/* Replaces every occurrence of a text in each of the files. The array must stay until the call is
 * done, and is written to. */
int hutch_replace_in_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                           struct hutch_replace *items, size_t n, struct hutch_call *call);

/* --- archives: whole trees as tar streams, by Hutch's agents --- */

/* Reads a folder, or a file, as a tar archive. ret as of hutch_download_file. */
struct hutch_archive_out {
        size_t size;
        const char *path;
        struct hutch_sink sink;
};
HUTCH_INITIALISER_(hutch_archive_out)
int hutch_download_archive(struct hutch_client *client, const struct hutch_endpoint *agent,
                           const struct hutch_archive_out *what, struct hutch_data **ret,
                           struct hutch_call *call);

struct hutch_archive_in {
        size_t size;
        const char *path; /* the folder to extract below; made if need be */
        struct hutch_source source;
        bool keep_owner;         /* the archive's owners, by number */
        uint64_t entries, bytes; /* what was written, once the call is done */
};
HUTCH_INITIALISER_(hutch_archive_in)

/* Extracts a tar archive that is not compressed. `what` must stay until the call is done, and is
 * written to. */
int hutch_upload_archive(struct hutch_client *client, const struct hutch_endpoint *agent,
                         struct hutch_archive_in *what, struct hutch_call *call);

/* --- metrics --- */

struct hutch_metrics {
        double cpu_count;
        double cpu_used_pct;
        double mem_total_mib, mem_used_mib;
        int64_t timestamp;
};
void hutch_metrics_free(struct hutch_metrics *metrics);

int hutch_get_metrics(struct hutch_client *client, const struct hutch_endpoint *agent,
                      struct hutch_metrics **ret, struct hutch_call *call);

/* Told every two seconds or so until it returns other than 0, which ends the call (HUTCH_CANCELED). */
struct hutch_metrics_watch {
        size_t size;
        int (*metrics)(void *data, const struct hutch_metrics *metrics);
        void *data;
};
HUTCH_INITIALISER_(hutch_metrics_watch)
int hutch_watch_metrics(struct hutch_client *client, const struct hutch_endpoint *agent,
                        const struct hutch_metrics_watch *watch, struct hutch_call *call);

/* --- tunnels: a TCP connection to a port of a sandbox (Hutch's agents) --- */

/*
 * A tunnel is a stream of bytes to 127.0.0.1:port in the sandbox, whatever protocol is spoken there.
 * (For HTTP hutch_get_endpoint is enough, and works with other servers.) Reading and writing never
 * block: HUTCH_AGAIN means to wait until hutch_tunnel_fd is readable. hutch_pump_tunnel does it all,
 * between the tunnel and a descriptor: a socket that was accepted, say.
 */
struct hutch_tunnel;

/* HUTCH_SERVER if nobody listens at that port. The tunnel keeps the call's loop, if it has one, which
 * must be freed after it. */
int hutch_open_tunnel(struct hutch_client *client, const struct hutch_endpoint *agent, int port,
                      struct hutch_tunnel **ret, struct hutch_call *call);

/* Breaks it off, if it has not ended. */
void hutch_tunnel_free(struct hutch_tunnel *tunnel);

/* For poll; what is to be waited for is told by hutch_tunnel_events (enum hutch_events). */
int hutch_tunnel_fd(const struct hutch_tunnel *tunnel);
unsigned hutch_tunnel_events(const struct hutch_tunnel *tunnel);

/* Up to n bytes; 0: the other side has sent everything. HUTCH_AGAIN: nothing now. */
int64_t hutch_tunnel_read(struct hutch_tunnel *tunnel, void *buf, size_t n);

/* How many of the bytes were taken. HUTCH_AGAIN: none now. With n == 0: sends what was taken before and
 * not sent yet. */
int64_t hutch_tunnel_write(struct hutch_tunnel *tunnel, const void *bytes, size_t n);

/* Says that no more bytes will come. What the server in the sandbox still has to say after that is
 * lost: WebSocket, by which a tunnel travels, closes both ways at once. */
int hutch_tunnel_end(struct hutch_tunnel *tunnel);

/* Copies bytes both ways between the tunnel and fd, a socket or other descriptor that can be polled and
 * is not blocking, until one side has ended and the other got it all; then 0. Neither is closed. */
int hutch_pump_tunnel(struct hutch_client *client, struct hutch_tunnel *tunnel, int fd,
                      struct hutch_call *call);

#ifdef __cplusplus
}
#endif

#endif
