/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_AGENT_H
#define HUTCH_AGENT_H

/* Calls to the agent in a sandbox: commands, sessions, files, metrics, tunnels. Include
 * <hutch/hutch.h>, which has the general rules. */

#include <hutch/lifecycle.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Succeeds if the agent responds. */
int hutch_ping(struct hutch_client *client, const struct hutch_endpoint *agent,
               struct hutch_call *call);

/* --- commands --- */

enum hutch_stream {
        HUTCH_STDOUT = 1,
        HUTCH_STDERR = 2,
};

/* Receives output as it arrives: complete lines if the server sends lines, else pieces of any size.
 * A nonzero return value ends the call with HUTCH_CANCELED. */
typedef int hutch_output_fn(void *data, enum hutch_stream stream, const char *bytes, size_t n);

struct hutch_command_options {
        size_t size;
        const char *command;     /* a command line for the shell; either this or argv */
        const char *const *argv; /* program and arguments, run without a shell */
        size_t n_argv;
        const char *cwd;              /* NULL: the agent's default */
        const struct hutch_pair *env; /* added to the sandbox's environment */
        size_t n_env;
        int64_t timeout_ms; /* the agent kills the command after this time; 0: never. The timeout of
                             * the call only ends the wait. */
        bool has_uid, has_gid; /* run as this user and group; gid requires uid */
        uint32_t uid, gid;
        bool open_stdin; /* allows hutch_write_stdin; else stdin is /dev/null */
        bool attached;   /* the command is killed when this call ends, for any reason (Hutch) */
        /* Receives the output, which is then not collected. May be NULL. */
        hutch_output_fn *output;
        /* Receives the command's id as soon as it is known, for status, stdin and signals. May be
         * NULL. */
        void (*started)(void *data, const char *id);
        void *data;
        uint64_t output_max; /* bytes to collect of each stream; 0: the client's response_max */
};
HUTCH_INITIALISER_(hutch_command_options)

struct hutch_command_result {
        const char *id;
        /* The collected output, NUL-terminated. The exact bytes with Hutch; servers that send lines
         * of text give these lines, each with a newline. */
        const char *out, *err;
        size_t out_n, err_n;
        bool out_truncated, err_truncated; /* there was more than output_max */
        /* The exit status. -1: killed by a signal, or the server does not report one. A command
         * that could not be started has -1, 127 or 255, depending on the server; see `error`. */
        int exit_code;
        int signal;        /* that killed it; 0: none, or the server does not report it */
        bool timed_out;    /* killed by its timeout (Hutch only) */
        const char *error; /* the server's description of a failure, or NULL */
        int64_t duration_ms;
};
void hutch_command_result_free(struct hutch_command_result *result);

/* Runs a command to completion. A command that fails is not an error of the call: check exit_code. */
int hutch_run_command(struct hutch_client *client, const struct hutch_endpoint *agent,
                      const struct hutch_command_options *options,
                      struct hutch_command_result **ret, struct hutch_call *call);

/* Starts a command in the background. The agent keeps its output; `output` is not used. Only the id
 * of the result is meaningful. */
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
        uint64_t output_dropped; /* bytes of output that are no longer kept (Hutch only) */
};
void hutch_command_status_free(struct hutch_command_status *status);

/* Works for foreground commands, too. */
int hutch_get_command_status(struct hutch_client *client, const struct hutch_endpoint *agent,
                             const char *id, struct hutch_command_status **ret,
                             struct hutch_call *call);

struct hutch_logs {
        const char *data; /* NUL-terminated */
        size_t n;
        uint64_t cursor;  /* where the next call continues */
        uint64_t dropped; /* requested bytes that are no longer kept */
};
void hutch_logs_free(struct hutch_logs *logs);

struct hutch_logs_query {
        size_t size;
        const char *command_id;
        uint64_t cursor; /* bytes before this position are not returned */
};
HUTCH_INITIALISER_(hutch_logs_query)

/* Returns the output of a background command so far, both streams merged. */
int hutch_get_command_logs(struct hutch_client *client, const struct hutch_endpoint *agent,
                           const struct hutch_logs_query *query, struct hutch_logs **ret,
                           struct hutch_call *call);

/* Sends SIGTERM, then SIGKILL if the command does not exit, and returns when it has exited. */
int hutch_interrupt_command(struct hutch_client *client, const struct hutch_endpoint *agent,
                            const char *id, struct hutch_call *call);

/* Sends a signal by its number. Hutch only; other agents give HUTCH_NOT_FOUND or
 * HUTCH_UNSUPPORTED. */
int hutch_signal_command(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const char *id, int signal, struct hutch_call *call);

/* --- sources and sinks --- */

/* Where the bytes of an upload come from. The first member that is set counts, in this order: read,
 * fd, data. It must stay valid until the call has ended. */
struct hutch_source {
        const void *data;
        uint64_t n; /* length of data; for fd and read the exact length, or 0: until the end */
        int fd; /* read from its current position; 0: none. Blocks the loop: for regular files */
        /* Fills buf with up to n bytes. Returns 0 at the end, a negative value to cancel. */
        int64_t (*read)(void *ctx, void *buf, size_t n);
        void *ctx;
};

/* Where the bytes of a download go: `write` if it is set, else fd if it is set, else memory, which
 * `ret` returns. */
struct hutch_sink {
        int fd; /* 0: none. Blocks the loop: for regular files */
        /* Consumes all n bytes and returns 0. A nonzero value cancels the call. */
        int (*write)(void *ctx, const void *bytes, size_t n);
        void *ctx;
};

struct hutch_data {
        const char *data; /* NUL-terminated; empty if a sink received the bytes */
        size_t n;         /* number of bytes, wherever they went */
};
void hutch_data_free(struct hutch_data *data);

struct hutch_stdin {
        size_t size;
        const char *command_id;
        struct hutch_source source;
        bool end; /* close stdin afterwards */
};
HUTCH_INITIALISER_(hutch_stdin)

/* Writes to the stdin of a command that was started with open_stdin. Hutch only. */
int hutch_write_stdin(struct hutch_client *client, const struct hutch_endpoint *agent,
                      const struct hutch_stdin *input, struct hutch_call *call);

/* --- sessions: a shell that keeps its directory and variables between commands --- */

struct hutch_session {
        const char *id;
};
void hutch_session_free(struct hutch_session *session);

/* Creates a session. cwd may be NULL; the directory is created if it does not exist. */
int hutch_create_session(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const char *cwd, struct hutch_session **ret, struct hutch_call *call);

struct hutch_session_command {
        size_t size;
        const char *session_id;
        const struct hutch_command_options *options;
};
HUTCH_INITIALISER_(hutch_session_command)

/* Runs a command in a session. Of the options, command, cwd, timeout_ms and the callbacks are used.
 * Both streams arrive as stdout. */
int hutch_run_in_session(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const struct hutch_session_command *command,
                         struct hutch_command_result **ret, struct hutch_call *call);

int hutch_delete_session(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const char *id, struct hutch_call *call);

/* --- files --- */

struct hutch_file_upload {
        size_t size;
        const char *path;
        struct hutch_source source;
        unsigned mode;             /* such as 0644; 0: the agent's default */
        const char *owner, *group; /* names; NULL: the agent's default */
};
HUTCH_INITIALISER_(hutch_file_upload)

/* Writes n files and creates their parent directories, in one request of any size. The array and
 * all memory it points to must stay valid until the call has ended. */
int hutch_upload_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                       const struct hutch_file_upload *files, size_t n, struct hutch_call *call);

struct hutch_download {
        size_t size;
        const char *path;
        uint64_t offset, length;      /* a range of bytes; length 0: to the end */
        uint64_t first_line, n_lines; /* a range of lines, from 1; excludes a range of bytes */
        struct hutch_sink sink;
};
HUTCH_INITIALISER_(hutch_download)

/* Reads a file. ret may be NULL if there is a sink. */
int hutch_download_file(struct hutch_client *client, const struct hutch_endpoint *agent,
                        const struct hutch_download *download, struct hutch_data **ret,
                        struct hutch_call *call);

struct hutch_file_info {
        const char *path;
        const char *type; /* "file", "directory", "symlink", "other", or NULL */
        int64_t size;
        int64_t modified_at, created_at;
        const char *owner, *group; /* or NULL */
        unsigned mode;             /* such as 0644 */
};

struct hutch_file_list {
        const struct hutch_file_info *const *items;
        size_t n;
};
void hutch_file_list_free(struct hutch_file_list *list);

struct hutch_search {
        size_t size;
        const char *dir;
        const char *pattern; /* a glob for file names; NULL: all */
};
HUTCH_INITIALISER_(hutch_search)

/* Finds files at any depth below a directory. Directories themselves are not listed. */
int hutch_search_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                       const struct hutch_search *search, struct hutch_file_list **ret,
                       struct hutch_call *call);

struct hutch_paths {
        const char *const *items;
        size_t n;
};

/* Returns information about the paths, in their order. Does not follow links. HUTCH_NOT_FOUND if one
 * of them does not exist. */
int hutch_get_file_info(struct hutch_client *client, const struct hutch_endpoint *agent,
                        const struct hutch_paths *paths, struct hutch_file_list **ret,
                        struct hutch_call *call);

/* Deletes files. A missing file is not an error, a directory is. */
int hutch_delete_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                       const struct hutch_paths *paths, struct hutch_call *call);

struct hutch_permission {
        const char *path;
        const char *owner, *group; /* NULL: unchanged */
        unsigned mode;             /* such as 0755; 0: unchanged */
};

int hutch_set_permissions(struct hutch_client *client, const struct hutch_endpoint *agent,
                          const struct hutch_permission *items, size_t n, struct hutch_call *call);

/* Creates directories and their parents. Owner and mode apply to those that did not exist. */
int hutch_make_directories(struct hutch_client *client, const struct hutch_endpoint *agent,
                           const struct hutch_permission *items, size_t n, struct hutch_call *call);

/* Deletes directories recursively. A missing directory is not an error. */
int hutch_delete_directories(struct hutch_client *client, const struct hutch_endpoint *agent,
                             const struct hutch_paths *paths, struct hutch_call *call);

struct hutch_directory {
        size_t size;
        const char *path;
        unsigned depth; /* levels; 0: 1 */
};
HUTCH_INITIALISER_(hutch_directory)

/* Lists a directory, sorted by name. A directory precedes its contents. */
int hutch_list_directory(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const struct hutch_directory *directory, struct hutch_file_list **ret,
                         struct hutch_call *call);

struct hutch_move {
        const char *from, *to;
};

/* Renames files or directories, one after the other. An existing `to` is never replaced. */
int hutch_move_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                     const struct hutch_move *items, size_t n, struct hutch_call *call);

struct hutch_replace {
        size_t size;
        const char *path;
        const char *old_text, *new_text;
        int64_t replaced; /* set by the call: the number of replacements; -1: not reported */
};
HUTCH_INITIALISER_(hutch_replace)

/* Replaces every occurrence of old_text in each file. The array must stay valid until the call has
 * ended, because `replaced` is written to it. */
int hutch_replace_in_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                           struct hutch_replace *items, size_t n, struct hutch_call *call);

/* --- archives: directory trees as tar streams (Hutch only) --- */

struct hutch_archive_out {
        size_t size;
        const char *path;
        struct hutch_sink sink;
};
HUTCH_INITIALISER_(hutch_archive_out)

/* Reads a directory or a file as a tar archive. `ret` as in hutch_download_file. */
int hutch_download_archive(struct hutch_client *client, const struct hutch_endpoint *agent,
                           const struct hutch_archive_out *archive, struct hutch_data **ret,
                           struct hutch_call *call);

struct hutch_archive_in {
        size_t size;
        const char *path; /* the directory to extract to; created if it does not exist */
        struct hutch_source source;
        bool keep_owner;         /* apply the numeric owners of the archive */
        uint64_t entries, bytes; /* set by the call: what was written */
};
HUTCH_INITIALISER_(hutch_archive_in)

/* Extracts an uncompressed tar archive. `archive` must stay valid until the call has ended, because
 * the call writes to it. */
int hutch_upload_archive(struct hutch_client *client, const struct hutch_endpoint *agent,
                         struct hutch_archive_in *archive, struct hutch_call *call);

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

struct hutch_metrics_watch {
        size_t size;
        int (*metrics)(void *data, const struct hutch_metrics *metrics); /* nonzero ends the call */
        void *data;
};
HUTCH_INITIALISER_(hutch_metrics_watch)

/* Delivers metrics about every two seconds until the callback returns nonzero (HUTCH_CANCELED). */
int hutch_watch_metrics(struct hutch_client *client, const struct hutch_endpoint *agent,
                        const struct hutch_metrics_watch *watch, struct hutch_call *call);

/* --- tunnels: a TCP connection to a port in a sandbox (Hutch only) --- */

/*
 * A tunnel carries a stream of bytes to 127.0.0.1:port in the sandbox, for any protocol. For HTTP,
 * hutch_get_endpoint is enough, and works with other servers, too. Reads and writes never block:
 * on HUTCH_AGAIN, wait for hutch_tunnel_fd. hutch_pump_tunnel does all of that between the tunnel
 * and a descriptor, such as an accepted socket.
 */
struct hutch_tunnel;

/* HUTCH_SERVER if nothing listens on the port. If the call has a loop, the tunnel uses it, and the
 * loop must be freed after the tunnel. */
int hutch_open_tunnel(struct hutch_client *client, const struct hutch_endpoint *agent, int port,
                      struct hutch_tunnel **ret, struct hutch_call *call);

/* Closes the connection if it is still open. */
void hutch_tunnel_free(struct hutch_tunnel *tunnel);

/* The descriptor and the events (enum hutch_events) to poll for. */
int hutch_tunnel_fd(const struct hutch_tunnel *tunnel);
unsigned hutch_tunnel_events(const struct hutch_tunnel *tunnel);

/* Reads up to n bytes. 0: the peer has sent everything. HUTCH_AGAIN: nothing is available yet. */
int64_t hutch_tunnel_read(struct hutch_tunnel *tunnel, void *buf, size_t n);

/* Returns the number of bytes accepted. HUTCH_AGAIN: none. With n == 0, sends bytes that were
 * accepted earlier and are still buffered. */
int64_t hutch_tunnel_write(struct hutch_tunnel *tunnel, const void *bytes, size_t n);

/* Ends the stream in both directions: a tunnel uses WebSocket, which has no half-close. Bytes that
 * the peer sends afterwards are lost. */
int hutch_tunnel_end(struct hutch_tunnel *tunnel);

/* Copies bytes in both directions between the tunnel and fd, which must be pollable and
 * non-blocking. Returns 0 when one side has ended and the other has received everything. Closes
 * neither. */
int hutch_pump_tunnel(struct hutch_client *client, struct hutch_tunnel *tunnel, int fd,
                      struct hutch_call *call);

#ifdef __cplusplus
}
#endif

#endif
