/* SPDX-License-Identifier: Apache-2.0 */
#include "store/nats/settings.h"

#include <sys/stat.h>

#include "base/base.h"
#include "base/parse.h"
#include "os/virtual_file.h"
#include "store/nats_url.h"
#include "store/store_nats.h"

#define MARKER_MS 600000U

/* --- single values --- */

static const char *set_urls(void *target, struct str value)
{
        struct str rest = value;
        struct nats_url url;

        ((struct nats_settings *) target)->urls = value;
        while (rest.n > 0) {
                const char *wrong = nats_url_take(&rest, &url);

                if (wrong)
                        return wrong;
        }
        return value.n > 0 ? NULL : "expected a URL";
}

static const char *set_bucket(void *target, struct str value)
{
        ((struct nats_settings *) target)->bucket = value.p;
        return nats_is_bucket(value) ? NULL : "expected letters, digits, - and _";
}

#define SET_NUMBER(member, max)                                           \
        static const char *set_##member(void *target, struct str value)   \
        {                                                                 \
                uint64_t n;                                               \
                                                                          \
                if (parse_u64_max(value, max, &n) < 0 || n == 0)          \
                        return "expected a number";                       \
                ((struct nats_settings *) target)->member = (unsigned) n; \
                return NULL;                                              \
        }

SET_NUMBER(replicas, STORE_NATS_REPLICAS_MAX)
SET_NUMBER(wait_ms, 3600000)
SET_NUMBER(marker_ms, UINT32_MAX)

#define SET_TEXT(member)                                                \
        static const char *set_##member(void *target, struct str value) \
        {                                                               \
                ((struct nats_settings *) target)->member = value.p;    \
                return value.n > 0 ? NULL : "expected a text";          \
        }

SET_TEXT(user)
SET_TEXT(password_file)
SET_TEXT(token_file)
SET_TEXT(credentials_file)
SET_TEXT(ca_file)
SET_TEXT(cert_file)
SET_TEXT(key_file)

static const struct option options[] = {
        { "url", "URL,...", "servers, tried in this order", set_urls },
        { "bucket", "NAME", "the bucket; created if it is missing", set_bucket },
        { "replicas", "N", "replicas of the bucket", set_replicas },
        { "wait-ms", "N", "timeout of a request", set_wait_ms },
        { "marker-ms", "N", "how long markers of removed keys are kept (default 600000)",
          set_marker_ms },
        { "user", "NAME", "user name", set_user },
        { "password-file", "FILE", "file with the password", set_password_file },
        { "token-file", "FILE", "file with a token", set_token_file },
        { "credentials-file", "FILE", "credentials file, as created by nsc", set_credentials_file },
        { "ca-file", "FILE", "trusted certificates", set_ca_file },
        { "cert-file", "FILE", "client certificate", set_cert_file },
        { "key-file", "FILE", "key of the client certificate", set_key_file },
};

enum options_result nats_settings_parse(int argc, char **argv, struct nats_settings *ret,
                                        struct buf *text)
{
        static const struct option_table table = {
                .program = "hutch-store-nats",
                .usage = "[OPTION]...",
                .summary = "Stores the records of hutchd in NATS. Started by hutchd.",
                .manual = "hutchd.yaml(5)",
                .options = options,
                .n = ARRAY_SIZE(options),
        };
        enum options_result r;

        *ret = (struct nats_settings){
                .bucket = STORE_NATS_BUCKET, .replicas = 1, .wait_ms = 5000, .marker_ms = MARKER_MS
        };
        r = options_parse(&table, argc, argv, ret, NULL, text);
        if (r != OPTIONS_RUN || ret->urls.n > 0)
                return r;
        buf_add_str(text, STR("hutch-store-nats: --url is missing; hutchd starts this program\n"));
        return OPTIONS_EXIT_USAGE;
}

/* --- secrets --- */

int nats_settings_secret(const char *path, struct secret **ret, struct err *e)
{
        char text[SETTINGS_SECRET_MAX + 2];
        struct stat st;
        ssize_t n;

        if (!path) {
                *ret = NULL;
                return 0;
        }
        if (stat(path, &st) < 0)
                return err_errno(e, -errno, "%s", path);
        if ((st.st_mode & S_IRWXO) != 0)
                return err_set(e, ERR_FORBIDDEN, "%s: other users can read it; chmod o= it", path);
        n = virtual_file_read(path, text, sizeof(text));
        if (n < 0)
                return err_errno(e, (int) n, "%s", path);
        while (n > 0 && strchr("\r\n", text[n - 1]))
                n--;
        text[n] = '\0';
        *ret = n > 0 && n <= SETTINGS_SECRET_MAX ? secret_new(str_of(text, (size_t) n + 1)) : NULL;
        wipe(text, sizeof(text));
        return *ret ? 0
                    : err_set(e, ERR_INVALID, "%s: expected one line of 1 to %d bytes", path,
                              SETTINGS_SECRET_MAX);
}
