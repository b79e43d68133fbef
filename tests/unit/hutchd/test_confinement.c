/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/confinement.h"

#include "base/base.h"
#include "os/landlock.h"
#include "tests/lib/check.h"

#define DIGEST "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f"

/* The rules of a file as one text: "PATH ACCESS ..., bind PORT ..., connect PORT ...", without those that are always
 * there. */
static const char letters[] = "rlwxfdsm"; /* of enum landlock_access, from its lowest bit */

static const char *rules_of(const char *text, const char *file)
{
        static char result[4096];
        const struct sd_notify none = { ._fd = -EBADF };
        struct confinement x;
        struct config *c = NULL;
        struct err e = { 0 };
        struct buf b;

        buf_init_fixed(&b, result, sizeof(result));
        check_z_eq(config_parse(str_from(text), "file", &c, &e) < 0 ? e.message : "", "");
        check_i64_eq(confinement_make(c, file, &none, &x, &e), 0);
        for (size_t i = 5; i < x.n; i++) {
                buf_addf(&b, "%s ", x.paths[i].path);
                for (unsigned bit = 0; bit < sizeof(letters) - 1; bit++)
                        if (x.paths[i].access >> bit & 1)
                                buf_addf(&b, "%c", letters[bit]);
                buf_addf(&b, "\n");
        }
        for (size_t i = 0; i < x.n_bind && x.scopes & LANDLOCK_BIND; i++)
                buf_addf(&b, "bind %u\n", x.bind[i]);
        if (x.scopes & LANDLOCK_CONNECT)
                buf_addf(&b, "connect%s", x.n_connect > 0 ? "" : " to nothing\n");
        for (size_t i = 0; i < x.n_connect; i++)
                buf_addf(&b, " %u\n", x.connect[i]);
        if (!(x.scopes & LANDLOCK_ABSTRACT))
                buf_addf(&b, "abstract sockets\n");
        check_true(x.scopes & LANDLOCK_SIGNALS);
        config_free(c);
        return result;
}

static void test_the_least(void **state)
{
        (void) state;
        check_z_eq(rules_of("data: /srv/hutch\n", NULL), "/srv/hutch rlwfds\n"
                                                         "bind 8080\n"
                                                         "connect to nothing\n");
}

static void test_files_that_are_replaced_and_sockets(void **state)
{
        (void) state;
        check_z_eq(rules_of("data: /srv/hutch\n"
                            "listen: [127.0.0.1:0, '[::1]:90', 'unix:/run/none/socket']\n"
                            "audit: {file: /none/logs/audit}\n"
                            "log: {access: true, access_file: /none/access/log}\n",
                            "/none/hutchd.yaml"),
                   "/srv/hutch rlwfds\n"
                   "/none r\n"
                   "/none/logs/audit rwf\n"
                   "/none/logs rwf\n"
                   "/none/access/log rwf\n"
                   "/none/access rwf\n"
                   "/run/none s\n"
                   "bind 0\n"
                   "bind 90\n"
                   "connect to nothing\n");
        /* The directory of a device has others. */
        check_z_eq(rules_of("data: /srv/hutch\naudit: {file: /dev/null}\n", "hutchd.yaml"),
                   "/srv/hutch rlwfds\n"
                   ". r\n"
                   "/dev/null rwf\n"
                   "bind 8080\n"
                   "connect to nothing\n");
        check_z_eq(rules_of("data: /srv/hutch\naudit: {file: off}\n", "/hutchd.yaml"),
                   "/srv/hutch rlwfds\n"
                   "/ r\n"
                   "bind 8080\n"
                   "connect to nothing\n");
}

static void test_stores(void **state)
{
        (void) state;
        check_z_eq(
                rules_of(
                        "data: /srv/hutch\n"
                        "store: {kind: redis, address: '127.0.0.1:6379', password_file: /none/p}\n",
                        NULL),
                "/srv/hutch rlwfds\n"
                "/none/p r\n"
                "bind 8080\n"
                "connect 6379\n");
        check_z_eq(rules_of("data: /srv/hutch\n"
                            "store: {kind: redis, address: 'unix:/run/redis'}\n"
                            "cluster: {advertise: 'http://10.0.0.7:80', key_file: /none/k}\n",
                            NULL),
                   "/srv/hutch rlwfds\n"
                   "/none/k r\n"
                   "bind 8080\n");
}

/* Some of them depend on where the programs are. */
static void test_workers(void **state)
{
        const char *rules;

        (void) state;
        rules = rules_of("data: /srv/hutch\n"
                         "drivers: [docker]\n"
                         "docker: {worker: /opt/none/hutch-engine}\n",
                         NULL);
        check_true(strstr(rules, "/opt/none rx\n"));
        check_true(strstr(rules, "\n/ m\n"));
        check_true(strstr(rules, "\n/usr/lib rlx\n"));
        check_true(strstr(rules, "\nconnect to nothing\n"));
        check_true(!strstr(rules, "/etc "));

        /* A service manager starts it. */
        check_z_eq(rules_of("data: /srv/hutch\n"
                            "drivers: [podman]\n"
                            "podman: {worker: 'unix:/run/worker'}\n",
                            NULL),
                   "/srv/hutch rlwfds\n"
                   "bind 8080\n"
                   "connect to nothing\n");

        rules = rules_of(
                "data: /srv/hutch\n"
                "store: {kind: nats, url: 'tls://nats.example.org', ca_file: /none/ca.pem}\n",
                NULL);
        check_true(strstr(rules, "\n/none r\n"));
        check_true(strstr(rules, "\n/etc rl\n"));
        check_true(strstr(rules, "\n/usr/lib rlx\n"));
        check_true(!strstr(rules, "connect"));
        check_true(!strstr(rules, "\n/ m\n"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_least),
                cmocka_unit_test(test_files_that_are_replaced_and_sockets),
                cmocka_unit_test(test_stores),
                cmocka_unit_test(test_workers),
        };

        return cmocka_run_group_tests_name("hutchd/confinement", tests, NULL, NULL);
}
