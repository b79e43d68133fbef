/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/settings.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "bridge/transport.h"
#include "tests/lib/check.h"

static void urls(void **state)
{
        static const struct {
                const char *text, *transport, *host, *path;
                int port; /* 0: refused */
                bool tls;
        } cases[] = {
                { "nats: nats://h", "nats", "h", NULL, 4222, false },
                { "nats: tls://h:1", "nats", "h", NULL, 1, true },
                { "mqtt: mqtt://[::1]", "mqtt", "[::1]", NULL, 1883, false },
                { "mqtt: mqtts://[::1]:2", "mqtt", "[::1]", NULL, 2, true },
                { "amqp: amqp://h/", "amqp", "h", NULL, 5672, false },
                { "amqp: amqps://h/a%2Fb", "amqp", "h", "a/b", 5671, true },
                { "amqp: amqp://h/v", "amqp", "h", "v", 5672, false },
                { "amqp: amqp://h/%2", NULL, NULL, NULL, 0, false },
                { "amqp: amqp://h/%00", NULL, NULL, NULL, 0, false },
                { "nats: mqtt://h", NULL, NULL, NULL, 0, false },
                { "nats: nats://h/path", NULL, NULL, NULL, 0, false },
                { "nats: nats://me:word@h", NULL, NULL, NULL, 0, false },
                { "nats: nats://", NULL, NULL, NULL, 0, false },
                { "nats: nats://h:0", NULL, NULL, NULL, 0, false },
                { "nats: nats://h:65536", NULL, NULL, NULL, 0, false },
                { "nats: h:4222", NULL, NULL, NULL, 0, false },
                { "nats: nats://h\nmqtt: mqtt://h", NULL, NULL, NULL, 0, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct settings *s = NULL;
                struct err e;
                int r;

                check_case(cases[i].text);
                r = settings_from_text(str_from(cases[i].text), "f", &s, &e);
                check_i64_eq(r == 0, cases[i].port != 0);
                if (r == 0) {
                        check_z_eq(s->transport->name, cases[i].transport);
                        check_z_eq(s->host, cases[i].host);
                        check_true(cases[i].path ? s->path && strcmp(s->path, cases[i].path) == 0
                                                 : !s->path);
                        check_i64_eq(s->port, cases[i].port);
                        check_i64_eq(s->tls, cases[i].tls);
                }
                settings_free(s);
        }
}

static void what_is_wrong_is_said(void **state)
{
        static const struct {
                const char *text, *said;
        } cases[] = {
                { "", "no broker is configured" },
                { "# nothing\n---\n", "no broker is configured" },
                { "nats: nats://h\nspeed: 9", "f:2: \"speed\": unknown key" },
                { "nats: nats://h\nin_flight: 0",
                  "in_flight: \"0\": expected a number from 1 to 65535" },
                { "nats: nats://h\nin_flight: 70000",
                  "in_flight: \"70000\": expected a number from 1 to 65535" },
                { "nats: nats://h\nin_flight_per_tenant: 0",
                  "in_flight_per_tenant: \"0\": expected a number from 1 to 65535" },
                { "nats: nats://h\nin_flight: 8\nin_flight_per_tenant: 9",
                  "in_flight_per_tenant must not be larger than in_flight" },
                { "nats: nats://h\ncaller_timeout: soon", "expected a time" },
                { "nats: nats://h\nwaiting: many",
                  "f:2: waiting: \"many\": expected a number from 1 to 1000000" },
                { "nats: nats://h\ndrain_timeout: long", "expected a time" },
                { "nats: nats://h\nprefix: a.b", "prefix: \"a.b\": expected a name" },
                { "nats: nats://h\ninstance: 'a b'", "instance: \"a b\": expected a name" },
                { "nats: nats://h\nlog_level: loud", "log_level:" },
                { "nats: nats://h\nca: /x", "a URL with TLS" },
                { "nats: tls://h\ncert: /x", "need each other" },
                { "nats: nats://h\npassword_file: /x", "needs user" },
                { "nats: nats://h\nhutchd: http://far.example", "needs https://" },
                { "nats: nats://h\nhutchd: ftp://x", "hutchd: \"ftp://x\": expected an address" },
                { "nats: nats://h\nkey_file: /nothing/here", "read /nothing/here" },
                { "nats: [1]", "f:1: nats: expected a text" },
                { "nats: nats://me:s3cret@h", "f:1: nats: expected a URL without user" },
                { "- a", "f:1: " },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct settings *s = NULL;
                struct err e = { 0 };

                check_case(cases[i].text);
                check_true(settings_from_text(str_from(cases[i].text), "f", &s, &e) < 0);
                if (!strstr(e.message, cases[i].said))
                        check_z_eq(e.message, cases[i].said);
                check_true(!strstr(e.message, "s3cret"));
                settings_free(s);
        }
}

static void make_file(char *path, const char *text, mode_t mode)
{
        int fd = mkstemp(path);

        check_true(fd >= 0);
        check_i64_eq(write(fd, text, strlen(text)), (long long) strlen(text));
        check_i64_eq(fchmod(fd, mode), 0);
        (void) close(fd);
}

static void secrets_come_from_files_of_ones_own(void **state)
{
        static const struct {
                mode_t mode;
                const char *text, *secret; /* NULL: refused */
        } cases[] = {
                { 0600, "word\n", "word" }, { 0440, "word", "word" }, { 0644, "word\n", NULL },
                { 0602, "word\n", NULL },   { 0600, "\n", NULL },     { 0600, "a b\r\n", "a b" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char path[128], text[256];
                struct settings *s = NULL;
                struct err e;
                int r;

                check_case(cases[i].text);
                (void) snprintf(path, sizeof(path), "%s/bridge-XXXXXX", check_tmp());
                make_file(path, cases[i].text, cases[i].mode);
                (void) snprintf(text, sizeof(text), "nats: nats://h\nuser: me\npassword_file: %s",
                                path);
                r = settings_from_text(str_from(text), "f", &s, &e);
                (void) unlink(path);
                check_i64_eq(r == 0, cases[i].secret != NULL);
                if (r == 0 && cases[i].secret)
                        check_view_eq(secret_expose(s->password), str_from(cases[i].secret));
                settings_free(s);
        }
}

static void a_tenant_gets_a_quarter(void **state)
{
        static const struct {
                const char *text;
                unsigned per_tenant;
                usec_t caller_timeout;
        } cases[] = {
                { "nats: nats://h", 64, USEC_INFINITY },
                { "nats: nats://h\nin_flight: 3\ncaller_timeout: 0s", 1, USEC_INFINITY },
                { "nats: nats://h\nin_flight_per_tenant: 256\ncaller_timeout: 30s", 256,
                  30 * USEC_PER_SEC },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct settings *s = NULL;
                struct err e;

                check_case(cases[i].text);
                check_i64_eq(settings_from_text(str_from(cases[i].text), "f", &s, &e), 0);
                check_u64_eq(s->in_flight_per_tenant, cases[i].per_tenant);
                check_u64_eq(s->caller_timeout, cases[i].caller_timeout);
                settings_free(s);
        }
}

static void the_command_line_wins(void **state)
{
        char path[128], config[160];
        char in_flight[] = "--in-flight=7", mqtt[] = "--mqtt=mqtt://b", name[] = "hutch-bridge";
        char *argv[] = { name, config, in_flight, mqtt, NULL };
        scoped(buf_done) struct buf text;
        struct settings *s = NULL;

        buf_init(&text, BUF_MAX_LOG_LINE);
        (void) snprintf(path, sizeof(path), "%s/bridge-XXXXXX", check_tmp());
        make_file(path, "nats: nats://a\nin_flight: 3\nwaiting: 5\n", 0644);
        (void) snprintf(config, sizeof(config), "--config=%s", path);
        check_i64_eq(settings_parse(4, argv, &s, &text), OPTIONS_RUN);
        (void) unlink(path);
        check_z_eq(s->transport->name, "mqtt");
        check_u64_eq(s->in_flight, 7);
        check_u64_eq(s->waiting, 5);
        check_z_eq(s->hutchd_socket, "/run/hutch/hutchd.sock");
        settings_free(s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(urls),
                cmocka_unit_test(what_is_wrong_is_said),
                cmocka_unit_test(secrets_come_from_files_of_ones_own),
                cmocka_unit_test(a_tenant_gets_a_quarter),
                cmocka_unit_test(the_command_line_wins),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
