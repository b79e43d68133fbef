/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/settings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "bridge/settings_told.h"

#define IN_FLIGHT_DEFAULT 256
#define WAITING_DEFAULT   4096
#define DRAIN_DEFAULT     (60 * USEC_PER_SEC)

/* --- memory --- */

static struct settings *settings_new(void)
{
        struct settings *s = xnew(struct settings);

        arena_init(&s->memory, SETTINGS_ROOM);
        s->prefix = STR("purista");
        s->hutchd_url = "http://localhost";
        s->hutchd_socket = "/run/hutch/hutchd.sock";
        s->in_flight = IN_FLIGHT_DEFAULT;
        s->waiting = WAITING_DEFAULT;
        s->drain_timeout = DRAIN_DEFAULT;
        s->log_level = LOG_INFO;
        s->log_format = LOG_LOGFMT;
        return s;
}

void settings_free(struct settings *s)
{
        if (!s)
                return;
        secret_free(s->password);
        secret_free(s->token);
        secret_free(s->key);
        arena_done(&s->memory);
        free(s);
}

static void settings_freep(struct settings **s)
{
        settings_free(*s);
}

/* --- files --- */

static void closep(const int *fd)
{
        if (*fd >= 0)
                (void) close(*fd);
}

static int read_all(int fd, struct buf *ret)
{
        for (;;) {
                char *p = buf_reserve(ret, 4 * KiB);
                ssize_t n = p ? read(fd, p, 4 * KiB) : -1;

                if (!p)
                        return -EFBIG;
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0)
                        return 0;
                if (n > 0)
                        buf_advance(ret, (size_t) n);
        }
}

/* `forbidden`: what others than the owner may not be able to do with it. */
static int read_file(const char *path, mode_t forbidden, struct buf *ret, struct err *e)
{
        scoped(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;
        int r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return err_errno(e, -errno, "read %s", path);
        if (!S_ISREG(st.st_mode))
                return err_set(e, ERR_INVALID, "read %s: it is no regular file", path);
        if (st.st_mode & forbidden)
                return err_set(e, ERR_FORBIDDEN, "everybody may %s %s; chmod o-rwx it",
                               forbidden & S_IROTH ? "read" : "write", path);
        r = read_all(fd, ret);
        return r < 0 ? err_errno(e, r, "read %s", path) : 0;
}

/* Without the line end with which editors end a file. */
static int read_secret(const char *path, struct secret **ret, struct err *e)
{
        scoped(buf_done) struct buf b;
        struct str text;
        int r;

        buf_init(&b, SECRET_FILE_MAX);
        if (!path)
                return 0;
        buf_mark_secret(&b);
        r = read_file(path, S_IRWXO, &b, e);
        if (r < 0)
                return r;
        text = buf_str(&b);
        while (text.n > 0 && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
                text.n--;
        if (text.n == 0 || memchr(text.p, '\0', text.n))
                return err_set(e, ERR_INVALID, "%s: there is no secret in it", path);
        /* With the NUL that libraries want; buffers have one behind their content. */
        buf_truncate(&b, text.n);
        *ret = secret_new(str_of(buf_str(&b).p, text.n + 1));
        return 0;
}

/* --- rules that are about more than one --- */

static bool is_loopback(struct str url)
{
        static const struct str local[] = { STR("http://localhost"), STR("http://127."),
                                            STR("http://[::1]") };

        for (size_t i = 0; i < ARRAY_SIZE(local); i++)
                if (str_starts_with(url, local[i]))
                        return true;
        return false;
}

static int check(const struct settings *s, struct err *e)
{
        struct str url = str_from(s->hutchd_url);

        if (!s->url)
                return err_set(e, ERR_INVALID, "there is no broker; try --nats, --mqtt or --amqp");
        if (!s->cert != !s->cert_key)
                return err_set(e, ERR_INVALID, "cert and cert_key need each other");
        if (s->password_file && !s->user)
                return err_set(e, ERR_INVALID, "password_file needs user");
        if ((s->ca || s->cert) && !s->tls)
                return err_set(e, ERR_INVALID,
                               "there are certificates, but the URL is one without TLS");
        if (!s->hutchd_socket && str_starts_with(url, STR("http://")) && !is_loopback(url))
                return err_set(e, ERR_INVALID,
                               "hutchd on another machine is reached by https:// only");
        return 0;
}

static int complete(struct settings *s, struct err *e)
{
        int r = check(s, e);

        if (r == 0)
                r = read_secret(s->password_file, &s->password, e);
        if (r == 0)
                r = read_secret(s->token_file, &s->token, e);
        if (r == 0)
                r = read_secret(s->key_file, &s->key, e);
        return r;
}

/* --- the file --- */

struct setting {
        const char *key;
        size_t offset; /* in struct told */
        const char *(*apply)(void *settings, struct str v);
};

static const struct setting table[] = {
#define X(id, option, value, help) { #id, offsetof(struct told, id), apply_##id },
        SETTING_MAP(X)
#undef X
};

static char *value_of(const struct told *t, const struct setting *s)
{
        char *value;

        memcpy(&value, (const char *) t + s->offset, sizeof(value));
        return value;
}

/* A broker of the command line takes the place of any of the file. */
static bool is_broker(const char *key)
{
        return strcmp(key, "nats") == 0 || strcmp(key, "mqtt") == 0 || strcmp(key, "amqp") == 0;
}

static int apply_told(struct settings *s, const struct told *file, const struct told *line,
                      const char *name, struct err *e)
{
        bool has_broker = s->url != NULL;

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                const char *value = value_of(file, &table[i]), *what;

                if (!value || value_of(line, &table[i]) || (has_broker && is_broker(table[i].key)))
                        continue;
                what = table[i].apply(s, str_from(value));
                if (what)
                        return err_set(e, ERR_INVALID, "%s: %s: %s", name, table[i].key, what);
        }
        return 0;
}

static int apply_text(struct settings *s, struct str text, const struct told *line,
                      const char *name, struct err *e)
{
        struct told *file;
        int r = told_from_text(text, name, &file, e);

        if (r < 0 || !file)
                return r;
        r = apply_told(s, file, line, name, e);
        told_free(file);
        return r;
}

static int apply_file(struct settings *s, const struct told *line, struct err *e)
{
        scoped(buf_done) struct buf b;
        int r;

        buf_init(&b, SETTINGS_FILE_MAX);
        if (!s->config)
                return 0;
        r = read_file(s->config, S_IWOTH, &b, e);
        return r < 0 ? r : apply_text(s, buf_str(&b), line, s->config, e);
}

int settings_from_text(struct str text, const char *name, struct settings **ret, struct err *e)
{
        scoped(settings_freep) struct settings *s = settings_new();
        int r = apply_text(s, text, &(struct told){ NULL }, name, e);

        if (r == 0)
                r = complete(s, e);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

/* --- the command line --- */

struct line {
        struct settings *settings;
        struct told told;
};

#define X(id, option, value, help)                               \
        static const char *take_##id(void *target, struct str v) \
        {                                                        \
                struct line *l = target;                         \
                                                                 \
                l->told.id = (char *) v.p;                       \
                return apply_##id(l->settings, v);               \
        }
SETTING_MAP(X)
#undef X

static const char *take_config(void *target, struct str v)
{
        struct line *l = target;

        l->settings->config = v.p;
        return v.n == 0 ? "not a file" : NULL;
}

static const char *take_check(void *target, struct str v)
{
        struct line *l = target;

        (void) v;
        l->settings->check_only = true;
        return NULL;
}

static const struct option options[] = {
        { "config", "FILE", "read settings from here, too; what is said on the command line wins",
          take_config },
        { "check-config", NULL, "say whether the settings are right, and exit", take_check },
#define X(id, option, value, help) { option, value, help, take_##id },
        SETTING_MAP(X)
#undef X
};

static const struct option_table option_table = {
        .program = "hutch-bridge",
        .usage = "[OPTION]...",
        .summary = "Serves PURISTA's sandbox commands on a message broker.",
        .manual = "hutch-bridge(8)",
        .options = options,
        .n = ARRAY_SIZE(options),
};

enum options_result settings_parse(int argc, char **argv, struct settings **ret, struct buf *text)
{
        scoped(settings_freep) struct settings *s = settings_new();
        struct line line = { .settings = s };
        enum options_result parsed = options_parse(&option_table, argc, argv, &line, NULL, text);
        struct err e;
        int r;

        if (parsed != OPTIONS_RUN)
                return parsed;
        r = apply_file(s, &line.told, &e);
        if (r == 0)
                r = complete(s, &e);
        if (r < 0) {
                buf_addf(text, "hutch-bridge: %s\n", e.message);
                return OPTIONS_EXIT_USAGE;
        }
        if (s->check_only) {
                buf_add_str(text, STR("The settings are right.\n"));
                return OPTIONS_EXIT_OK;
        }
        *ret = TAKE_PTR(s);
        return OPTIONS_RUN;
}
