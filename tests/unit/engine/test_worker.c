/* SPDX-License-Identifier: Apache-2.0 */

/* A worker, an engine that says odd things, and the test in the place of hutchd. */

#include "engine/worker.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/names.h"
#include "os/fd.h"
#include "os/walk.h"
#include "tests/lib/check.h"
#include "tests/lib/fake_engine.h"

#define INSTALLATION "11111111111111111111111111111111"
#define NAME         "hutch-sb-1." INSTALLATION
#define LABELS       "\"hutch.installation\":\"" INSTALLATION "\",\"hutch.sandbox\":\"sb-1\""

#define CONTAINER(status, more)                                                     \
        "200 {\"Id\":\"c1\",\"Name\":\"/" NAME "\",\"State\":{\"Status\":\"" status \
        "\",\"OOMKilled\":false,\"ExitCode\":0" more "},\"Config\":{\"Labels\":{" LABELS "}}}"
#define IMAGE                                                                               \
        "200 {\"Id\":\"sha256:aa\",\"Os\":\"linux\",\"Architecture\":\"amd64\",\"Config\":" \
        "{\"WorkingDir\":\"/w\",\"Entrypoint\":null,\"Cmd\":[\"sh\"]}}"
#define RECORD                                                                                   \
        "{\"schema\":1,\"sandboxId\":\"sb-1\",\"organizationId\":\"o\",\"projectId\":\"p\","     \
        "\"userId\":\"u\",\"containerName\":\"hutch-sb-1\",\"createdAt\":0,\"scope\":{\"kind\":" \
        "\"shared-project-user\"},\"tenant\":\"t\",\"node\":\"n\",\"driver\":\"docker\","        \
        "\"image\":\"debian:12\",\"entrypoint\":[\"sh\"],\"status\":{\"state\":\"Pending\","     \
        "\"lastTransitionAt\":0},\"version\":1}"

static struct {
        struct net_loop loop;
        char dir[64], run[96], agent[96];
        struct fake_engine engine;
        struct engine_settings settings;
        struct engine_worker worker;
        struct channel channel;
        bool channel_closed;

        /* what the worker said last */
        bool replied;
        enum err_code code; /* ERR_CODE_MAX_: none */
        char text[512];
        struct engine_state state;
        int64_t skipped;
        unsigned found, facts, died, watching;
        int died_status;
        int fd;
} x;

/* --- the test as hutchd --- */

static void take(const struct engine_message *m)
{
        x.found += m->found.p != NULL;
        x.facts += m->fact != NULL;
        x.watching += m->watching;
        if (m->died.p) {
                x.died++;
                x.died_status = m->state->status;
        }
        if (!m->done)
                return;
        x.replied = true;
        x.code = m->code ? (enum err_code)(m->code - 1) : ERR_CODE_MAX_;
        (void) snprintf(x.text, sizeof(x.text), "%.*s", STR_ARG(m->text));
        if (m->state)
                x.state = *m->state;
        x.skipped = m->skipped;
}

static void on_frame(struct channel *c, struct str text)
{
        struct engine_message m;
        struct arena a;
        struct err e;

        arena_init(&a, 4 * MiB);
        if (engine_message_decode(text, &a, &m, &e) < 0)
                fail_msg("%s", e.message);
        if (m.has_fd)
                x.fd = channel_take_fd(c);
        take(&m);
        arena_done(&a);
}

static void on_ended(struct channel *c, int r)
{
        channel_close(c);
}

static void on_closed(struct channel *c)
{
        x.channel_closed = true;
}

static void send_request(struct engine_request *q)
{
        static int64_t request_id;
        struct buf b;

        x.replied = false;
        q->request_id = ++request_id;
        buf_init(&b, MiB);
        engine_request_encode(&b, q);
        channel_send(&x.channel, buf_str(&b), -EBADF);
        buf_done(&b);
}

static enum err_code request(int call)
{
        struct engine_request q = { .call = call };

        if (call == ENGINE_CREATE)
                q.record = STR(RECORD);
        else if (call == ENGINE_HELLO) {
                q.version = ENGINE_PROTOCOL_VERSION;
                q.installation = STR(INSTALLATION);
        } else if (call != ENGINE_SCAN && call != ENGINE_PROBE)
                q.id = STR("sb-1");
        send_request(&q);
        wire_until(&x.loop, x.replied);
        return x.code;
}

/* --- life --- */

static void begin_with(const struct fake_response *responses, enum engine_reach reach)
{
        static const struct channel_ops ops = { .frame = on_frame,
                                                .ended = on_ended,
                                                .closed = on_closed };
        int fds[2];
        struct err e;

        memset(&x, 0, sizeof(x));
        x.fd = -EBADF;
        check_i64_eq(net_loop_init(&x.loop, &clock_system), 0);
        (void) snprintf(x.dir, sizeof(x.dir), "%s/engXXXXXX", check_tmp());
        check_true(mkdtemp(x.dir) != NULL);
        (void) snprintf(x.agent, sizeof(x.agent), "%s/agent", x.dir);
        check_i64_eq(fd_close(open(x.agent, O_WRONLY | O_CREAT | O_CLOEXEC, 0755)), -EBADF);
        fake_engine_open(&x.engine, &x.loop, x.dir, responses);
        x.settings = (struct engine_settings){ .kind = ENGINE_DOCKER,
                                               .reach = reach,
                                               .network = ENGINE_NETWORK_NONE,
                                               .socket = x.engine.path,
                                               .dir = x.dir,
                                               .agent = x.agent,
                                               .installation = STR(INSTALLATION) };
        check_i64_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        x.worker = (struct engine_worker){ .loop = &x.loop, .settings = &x.settings };
        check_i64_eq(engine_worker_start(&x.worker, fds[1], &e), 0);
        x.channel.frame_max = ENGINE_FRAME_MAX;
        x.channel.may_receive_fds = true;
        check_i64_eq(channel_open(&x.channel, &x.loop, fds[0], &ops), 0);
        check_i64_eq(request(ENGINE_HELLO), ERR_CODE_MAX_);
}

static void begin(const struct fake_response *responses)
{
        begin_with(responses, ENGINE_REACH_SOCKET);
}

static void end(void)
{
        struct walk_remove rm;
        int r;

        channel_close(&x.channel);
        wire_until(&x.loop, x.channel_closed && x.worker.open == 0);
        fake_engine_close(&x.engine);
        (void) fd_close(x.fd);
        net_loop_done(&x.loop);
        walk_remove_init(&rm, AT_FDCWD, x.dir);
        while ((r = walk_remove_step(&rm)) > 0)
                ;
        walk_remove_done(&rm);
        check_i64_eq(r, 0);
}

/* --- tests --- */

static void odd_answers_are_errors_in_words(void **state)
{
        static const struct {
                const char *name, *response;
                enum err_code code;
                const char *says;
        } cases[] = {
                { "no JSON", "200 <html>", ERR_UNAVAILABLE, "cannot be read" },
                { "another form", "200 []", ERR_UNAVAILABLE, "cannot be read" },
                { "no state", "200 {\"Id\":\"a\",\"Name\":\"/b\",\"Config\":{}}", ERR_UNAVAILABLE,
                  "State" },
                { "a state that is none", CONTAINER("melting", ""), ERR_UNAVAILABLE, "melting" },
                { "a refusal without words", "500 ", ERR_UNAVAILABLE, "500" },
                { "a refusal", "500 {\"message\":\"a\\nb\\u001b[31m\"}", ERR_UNAVAILABLE, "a\\nb" },
                { "a full disk", "500 {\"message\":\"write: no space left on device\"}",
                  ERR_EXHAUSTED, "no space left" },
                { "half an answer", "HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\n{",
                  ERR_UNAVAILABLE, "is incomplete" },
                { "no HTTP", "HTTP/9\r\n\r\n", ERR_UNAVAILABLE, "does not respond" },
                { "no answer", "HTTP/1.1", ERR_UNAVAILABLE, "does not respond" },
                { "another installation's",
                  "200 {\"Id\":\"a\",\"Name\":\"/" NAME "\",\"State\":{\"Status\":\"running\"},"
                  "\"Config\":{\"Labels\":{\"hutch.sandbox\":\"sb-1\"}}}",
                  ERR_CONFLICT, "left alone" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fake_response responses[] = { { "GET /events", "stream " },
                                                     { "GET /containers/" NAME, cases[i].response },
                                                     { 0 } };

                check_case(cases[i].name);
                begin(responses);
                check_i64_eq(request(ENGINE_INSPECT), cases[i].code);
                if (!strstr(x.text, cases[i].says))
                        fail_msg("%s: %s", cases[i].name, x.text);
                check_i64_eq(request(ENGINE_DESTROY), cases[i].code);
                check_false(fake_engine_got_request(&x.engine, "DELETE"));
                end();
        }
}

static void how_a_container_is_doing(void **state)
{
        static const struct {
                const char *response;
                int status, reason;
        } cases[] = {
                { CONTAINER("running", ""), RUNTIME_RUNNING, ENGINE_REASON_INVALID_ },
                { CONTAINER("paused", ""), RUNTIME_PAUSED, ENGINE_REASON_INVALID_ },
                { CONTAINER("created", ""), RUNTIME_DEAD, ENGINE_NEVER_STARTED },
                { CONTAINER("exited", ""), RUNTIME_ENDED, ENGINE_EXITED },
                { CONTAINER("exited", ",\"Error\":\"bad\""), RUNTIME_DEAD, ENGINE_EXITED },
                { "404 {}", RUNTIME_GONE, ENGINE_REASON_INVALID_ },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fake_response responses[] = { { "GET /containers/" NAME, cases[i].response },
                                                     { 0 } };

                check_case(cases[i].response);
                begin(responses);
                check_i64_eq(request(ENGINE_INSPECT), ERR_CODE_MAX_);
                check_i64_eq(x.state.status, cases[i].status);
                if (cases[i].reason >= 0)
                        check_i64_eq(x.state.reason, cases[i].reason);
                end();
        }
}

static bool dir_exists(void)
{
        char path[160];

        (void) snprintf(path, sizeof(path), "%s/" INSTALLATION "/run/sb-1", x.dir);
        return access(path, F_OK) == 0;
}

static void a_create_that_fails_is_undone(void **state)
{
        static const struct {
                const char *name, *image, *create, *start;
                enum err_code code;
                bool removes;
        } cases[] = {
                { "no such image", NULL, NULL, NULL, ERR_NOT_FOUND, false },
                { "the image is no image", "200 {}", NULL, NULL, ERR_UNAVAILABLE, false },
                { "another has made it", IMAGE, "409 {\"message\":\"in use\"}", NULL, ERR_CONFLICT,
                  false },
                { "it is refused", IMAGE, "400 {\"message\":\"no\"}", NULL, ERR_INVALID, false },
                { "unknown", IMAGE, "HTTP/1.1", NULL, ERR_UNAVAILABLE, true },
                { "it does not start", IMAGE, "201 {\"Id\":\"c1\"}", "500 {\"message\":\"no\"}",
                  ERR_UNAVAILABLE, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fake_response responses[8] = { { "GET /events", "stream " } };
                size_t n = 1;

                check_case(cases[i].name);
                if (cases[i].image)
                        responses[n++] = (struct fake_response){ "GET /images/debian%3A12/json",
                                                                 cases[i].image };
                if (cases[i].create)
                        responses[n++] = (struct fake_response){ "POST /containers/create",
                                                                 cases[i].create };
                if (cases[i].start)
                        responses[n++] = (struct fake_response){ "POST /containers/" NAME "/start",
                                                                 cases[i].start };
                responses[n++] = (struct fake_response){ "DELETE /containers/" NAME, "204" };
                begin(responses);
                check_i64_eq(request(ENGINE_CREATE), cases[i].code);
                check_i64_eq(fake_engine_got_request(&x.engine, "DELETE /containers/" NAME),
                             cases[i].removes);
                check_false(dir_exists());
                end();
        }
}

static void a_create_is_undone_when_the_engine_is_back(void **state)
{
        static const struct fake_response responses[] = {
                { "GET /events", "stream " },
                { "GET /images/", IMAGE },
                { "POST /containers/create", "201 {\"Id\":\"c1\"}" },
                { "POST /containers/" NAME "/start", "500 {\"message\":\"no\"}" },
                { "DELETE /containers/", "HTTP/1.1" },
                { 0 },
        };
        static const struct fake_response later[] = {
                { "GET /events", "stream " },
                { "GET /containers/" NAME, CONTAINER("created", "") },
                { "DELETE /containers/" NAME, "204" },
                { 0 },
        };

        begin(responses);
        check_i64_eq(request(ENGINE_CREATE), ERR_UNAVAILABLE);
        fake_engine_away(&x.engine);
        buf_reset(&x.engine.requests);
        x.engine.responses = later;
        fake_engine_listen(&x.engine);
        wire_until(&x.loop, fake_engine_got_request(&x.engine, "DELETE /containers/" NAME));
        check_true(x.watching >= 1);
        end();
}

static void what_hutchd_leaves_behind_is_undone(void **state)
{
        static const struct fake_response responses[] = {
                { "GET /images/", IMAGE },
                { "POST /containers/create", "201 {\"Id\":\"c1\"}" },
                { "POST /containers/" NAME "/start", "204" },
                { "DELETE /containers/" NAME, "204" },
                { 0 },
        };
        struct engine_request q = { .call = ENGINE_CREATE, .record = STR(RECORD) };

        begin(responses);
        send_request(&q); /* its agent never listens */
        wire_until(&x.loop, fake_engine_got_request(&x.engine, "/start"));
        channel_close(&x.channel);
        wire_until(&x.loop, fake_engine_got_request(&x.engine, "DELETE /containers/" NAME));
        end();
}

static void a_sandbox_that_is_made_gets_a_connection(void **state)
{
        static const struct fake_response responses[] = {
                { "GET /images/", IMAGE },
                { "POST /containers/create", "201 {\"Id\":\"c1\"}" },
                { "POST /containers/" NAME "/start", "204" },
                { 0 },
        };
        static struct json_pair env[] = { { { "SECRET", 6 }, { "hush \"x\"", 8 } } };
        struct engine_request q = { .call = ENGINE_CREATE,
                                    .record = STR(RECORD),
                                    .secret_env = { env, 1 } };
        struct sock_addr addr;
        char text[160];
        int fd;

        begin(responses);
        send_request(&q);
        wire_until(&x.loop, fake_engine_got_request(&x.engine, "/start"));
        check_false(x.replied);
        (void) snprintf(text, sizeof(text), "unix:%s/" INSTALLATION "/run/sb-1/" AGENT_SOCKET,
                        x.dir);
        check_i64_eq(sock_addr_from_string(str_from(text), &addr), 0);
        check_i64_eq(sock_listen(&addr, &fd), 0);
        check_i64_eq(chmod(text + 5, 0700), 0);
        wire_until(&x.loop, x.replied);
        check_i64_eq(x.code, ERR_CODE_MAX_);
        check_true(x.fd >= 0);
        check_true(memmem(buf_str(&x.engine.bodies).p, x.engine.bodies.n,
                          "\"SECRET=hush \\\"x\\\"\"", strlen("\"SECRET=hush \\\"x\\\"\""))
                   != NULL);
        (void) fd_close(fd);
        end();
}

#define VOLUME_RECORD(more)                                                                      \
        "{\"schema\":1,\"sandboxId\":\"sb-1\",\"organizationId\":\"o\",\"projectId\":\"p\","     \
        "\"userId\":\"u\",\"containerName\":\"hutch-sb-1\",\"createdAt\":0,\"scope\":{\"kind\":" \
        "\"shared-project-user\"},\"tenant\":\"t\",\"node\":\"n\",\"driver\":\"docker\","        \
        "\"image\":\"debian:12\",\"entrypoint\":[\"sh\"],\"volumes\":[{\"name\":\"v\","          \
        "\"mountPath\":\"/v\",\"pvc\":{\"claimName\":\"vol\"" more                               \
        "}}],\"status\":{\"state\":\"Pending\",\"lastTransitionAt\":0},\"version\":1}"

static void a_named_volume_is_for_its_tenant(void **state)
{
        static const struct {
                const char *name, *volume, *record;
                enum err_code code; /* UNAVAILABLE: it came as far as the container */
                bool makes;
                const char *made;
        } cases[] = {
                { "ours", "200 {\"Name\":\"vol\",\"Labels\":{\"hutch.tenant\":\"t\"}}",
                  VOLUME_RECORD(",\"createIfNotExists\":true"), ERR_UNAVAILABLE, false },
                { "all tenants'", "200 {\"Labels\":{\"hutch.tenant\":\"*\"}}",
                  VOLUME_RECORD(",\"createIfNotExists\":true"), ERR_UNAVAILABLE, false },
                { "another tenant's", "200 {\"Labels\":{\"hutch.tenant\":\"t2\"}}",
                  VOLUME_RECORD(",\"createIfNotExists\":true"), ERR_NOT_FOUND, false },
                { "another installation's",
                  "200 {\"Labels\":{\"hutch.tenant\":\"t\",\"hutch.installation\":\"2\"}}",
                  VOLUME_RECORD(",\"createIfNotExists\":true"), ERR_NOT_FOUND, false },
                { "nobody's", "200 {\"Labels\":null}", VOLUME_RECORD(",\"createIfNotExists\":true"),
                  ERR_NOT_FOUND, false },
                { "none yet", "404 {}", VOLUME_RECORD(",\"createIfNotExists\":true"),
                  ERR_UNAVAILABLE, true, "201 {\"Labels\":{\"hutch.tenant\":\"t\"}}" },
                { "none yet, but another tenant is faster", "404 {}",
                  VOLUME_RECORD(",\"createIfNotExists\":true"), ERR_NOT_FOUND, true,
                  "201 {\"Labels\":{\"hutch.tenant\":\"t2\"}}" },
                { "none, and not to be made", "404 {}",
                  VOLUME_RECORD(",\"createIfNotExists\":false"), ERR_NOT_FOUND, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fake_response responses[] = { { "GET /images/", IMAGE },
                                                     { "GET /volumes/vol", cases[i].volume },
                                                     { "POST /volumes/create", cases[i].made },
                                                     { "POST /containers/create", "500 {}" },
                                                     { 0 } };
                struct engine_request q = { .call = ENGINE_CREATE,
                                            .record = str_from(cases[i].record) };

                check_case(cases[i].name);
                begin(responses);
                send_request(&q);
                wire_until(&x.loop, x.replied);
                check_i64_eq(x.code, cases[i].code);
                check_i64_eq(fake_engine_got_request(&x.engine, "POST /volumes/create"),
                             cases[i].makes);
                end();
        }
}

#define PART_RECORD(more, sub)                                                                   \
        "{\"schema\":1,\"sandboxId\":\"sb-1\",\"organizationId\":\"o\",\"projectId\":\"p\","     \
        "\"userId\":\"u\",\"containerName\":\"hutch-sb-1\",\"createdAt\":0,\"scope\":{\"kind\":" \
        "\"shared-project-user\"},\"tenant\":\"t\",\"node\":\"n\",\"driver\":\"docker\","        \
        "\"image\":\"debian:12\",\"entrypoint\":[\"sh\"],\"volumes\":[{\"name\":\"v\","          \
        "\"subPath\":\"" sub "\",\"mountPath\":\"/v\",\"pvc\":{\"claimName\":\"vol\"" more       \
        "}}],\"status\":{\"state\":\"Pending\",\"lastTransitionAt\":0},\"version\":1}"

static bool was_sent(const char *what)
{
        return memmem(buf_str(&x.engine.bodies).p, x.engine.bodies.n, what, strlen(what)) != NULL;
}

/* The volume's directory has "there/in" and "link -> there". */
static void a_part_of_a_named_volume(void **state)
{
        static const struct {
                const char *name, *version, *about, *record;
                enum engine_reach reach;
                enum err_code code; /* UNAVAILABLE: it came as far as the container */
                const char *sent;   /* to make it */
        } cases[] = {
                { "is bound", "1.41", "\"Driver\":\"local\",\"Options\":null",
                  PART_RECORD("", "there/in"), ENGINE_REACH_SOCKET, ERR_UNAVAILABLE,
                  "/there/in\",\"Target\":\"/v\"" },
                { "has a label that keeps it", "1.41", "\"Driver\":\"local\",\"Options\":{}",
                  PART_RECORD("", "there/in"), ENGINE_REACH_SOCKET, ERR_UNAVAILABLE,
                  "\"hutch.volume.vol\":\"bound\"" },
                { "is made", "1.41", "\"Driver\":\"local\"",
                  PART_RECORD(",\"createIfNotExists\":true", "there/new/one"), ENGINE_REACH_SOCKET,
                  ERR_UNAVAILABLE, "/there/new/one\",\"Target\":\"/v\"" },
                { "is not to be made", "1.41", "\"Driver\":\"local\"",
                  PART_RECORD(",\"createIfNotExists\":false", "there/other"), ENGINE_REACH_SOCKET,
                  ERR_NOT_FOUND, NULL },
                { "is a link", "1.41", "\"Driver\":\"local\"", PART_RECORD("", "link"),
                  ENGINE_REACH_SOCKET, ERR_INVALID, NULL },
                { "is behind a link", "1.41", "\"Driver\":\"local\"", PART_RECORD("", "link/in"),
                  ENGINE_REACH_SOCKET, ERR_INVALID, NULL },
                { "would be made behind a link", "1.41", "\"Driver\":\"local\"",
                  PART_RECORD(",\"createIfNotExists\":true", "link/new"), ENGINE_REACH_SOCKET,
                  ERR_INVALID, NULL },
                { "of another driver", "1.41", "\"Driver\":\"nfs\"", PART_RECORD("", "there/in"),
                  ENGINE_REACH_SOCKET, ERR_UNSUPPORTED, NULL },
                { "with options", "1.44", "\"Driver\":\"local\",\"Options\":{\"type\":\"tmpfs\"}",
                  PART_RECORD("", "there/in"), ENGINE_REACH_SOCKET, ERR_UNSUPPORTED, NULL },
                { "of an engine far away", "1.44", "\"Driver\":\"local\"",
                  PART_RECORD("", "there/in"), ENGINE_REACH_EXEC, ERR_UNSUPPORTED, NULL },
                { "by the engine", "1.45", "\"Driver\":\"nfs\"", PART_RECORD("", "there/in"),
                  ENGINE_REACH_SOCKET, ERR_UNAVAILABLE,
                  "\"VolumeOptions\":{\"Subpath\":\"there/in\"}" },
                { "by an engine far away", "1.51", "\"Driver\":\"local\"",
                  PART_RECORD("", "there/in"), ENGINE_REACH_EXEC, ERR_UNAVAILABLE,
                  "\"VolumeOptions\":{\"Subpath\":\"there/in\"}" },
        };
        char directory[64], path[128], about[512], version[64];

        (void) snprintf(directory, sizeof(directory), "%s/partXXXXXX", check_tmp());
        check_true(mkdtemp(directory) != NULL);
        (void) snprintf(path, sizeof(path), "%s/there", directory);
        check_i64_eq(mkdir(path, 0700), 0);
        (void) snprintf(path, sizeof(path), "%s/there/in", directory);
        check_i64_eq(mkdir(path, 0700), 0);
        (void) snprintf(path, sizeof(path), "%s/link", directory);
        check_i64_eq(symlink("there", path), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fake_response responses[] = { { "GET /images/", IMAGE },
                                                     { "GET /version", version },
                                                     { "GET /volumes/vol", about },
                                                     { "GET /networks/", "200 {}" },
                                                     { "POST /containers/create", "500 {}" },
                                                     { 0 } };
                struct engine_request q = { .call = ENGINE_CREATE,
                                            .record = str_from(cases[i].record) };

                check_case(cases[i].name);
                (void) snprintf(version, sizeof(version),
                                "200 {\"Version\":\"9\",\"ApiVersion\":\"%s\"}", cases[i].version);
                (void) snprintf(
                        about, sizeof(about),
                        "200 {%s,\"Mountpoint\":\"%s\",\"Labels\":{\"hutch.tenant\":\"t\"}}",
                        cases[i].about, directory);
                begin_with(responses, cases[i].reach);
                send_request(&q);
                wire_until(&x.loop, x.replied);
                check_i64_eq(x.code, cases[i].code);
                check_i64_eq(fake_engine_got_request(&x.engine, "POST /containers/create"),
                             cases[i].sent != NULL);
                check_true(!cases[i].sent || was_sent(cases[i].sent));
                end();
        }
        check_i64_eq(walk_remove_all(AT_FDCWD, directory), 0);
}

#define DESTROY_RECORD \
        PART_RECORD(",\"createIfNotExists\":true,\"deleteOnSandboxTermination\":true", "a")

static void a_volume_of_which_parts_are_bound_stays(void **state)
{
        static const struct {
                const char *name, *users;
                bool removed;
        } cases[] = {
                { "nobody", "200 []\n", true },
                { "in use", "200 [{\"Id\":\"c2\"}]", false },
                { "the engine does not say", "500 {}", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(buf_done) struct buf text;
                struct fake_response responses[] = {
                        { "GET /containers/" NAME "/json", NULL },
                        { "GET /containers/json?all=true&limit=1&", cases[i].users },
                        { "DELETE /containers/", "204" },
                        { "GET /volumes/vol",
                          "200 {\"Labels\":{\"hutch.tenant\":\"t\",\"hutch.installation\":"
                          "\"" INSTALLATION "\"}}" },
                        { "DELETE /volumes/vol", "204" },
                        { 0 },
                };

                check_case(cases[i].name);
                buf_init(&text, 64 * KiB);
                buf_add_str(&text, STR("200 {\"Id\":\"c1\",\"Name\":\"/" NAME
                                       "\",\"State\":{\"Status\":\"running\"},\"Config\":{"
                                       "\"Labels\":{" LABELS ",\"hutch.record\":"));
                buf_add_quoted(&text, STR(DESTROY_RECORD));
                buf_add_str(&text, STR("}}}"));
                responses[0].response = buf_str(&text).p;
                begin(responses);
                check_i64_eq(request(ENGINE_DESTROY), ERR_CODE_MAX_);
                check_i64_eq(fake_engine_got_request(&x.engine, "DELETE /volumes/vol"),
                             cases[i].removed);
                end();
        }
}

static void lists_are_read_one_by_one(void **state)
{
#define ENTRY(labels, name)                 \
        "{\"Id\":\"c\",\"Names\":[\"/" name \
        "\"],\"State\":\"running\",\"Status\":\"Up\",\"Labels\":{" labels "}}"
        static const struct {
                const char *name, *response;
                enum err_code code;
                unsigned found;
                int64_t skipped;
        } cases[] = {
                { "none", "200 []", ERR_CODE_MAX_, 0, 0 },
                { "null", "200 null", ERR_CODE_MAX_, 0, 0 },
                { "one without a record", "200 [" ENTRY(LABELS, NAME) "]", ERR_CODE_MAX_, 0, 1 },
                { "foreign ones", "200 [" ENTRY("\"hutch.installation\":\"2\"", "a") "]",
                  ERR_CODE_MAX_, 0, 0 },
                { "no list", "200 {\"a\":1}", ERR_UNAVAILABLE, 0, 0 },
                { "half a list", "200 [" ENTRY(LABELS, NAME) ",", ERR_UNAVAILABLE, 0, 0 },
                { "a refusal", "500 {\"message\":\"no\"}", ERR_UNAVAILABLE, 0, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fake_response responses[] = {
                        { "GET /containers/json?all=true", cases[i].response }, { 0 }
                };

                check_case(cases[i].name);
                begin(responses);
                check_i64_eq(request(ENGINE_SCAN), cases[i].code);
                check_i64_eq(x.found, cases[i].found);
                if (x.code == ERR_CODE_MAX_)
                        check_i64_eq(x.skipped, cases[i].skipped);
                end();
        }
}

static void an_event_is_a_reason_to_look(void **state)
{
#define EVENT(action, labels)                          \
        "{\"Type\":\"container\",\"Action\":\"" action \
        "\",\"Actor\":{\"Attributes\":{\"name\":\"" NAME "\"," labels "}}}\n"
        static const struct {
                const char *name, *event, *container;
                unsigned died;
        } cases[] = {
                { "it has died", "stream " EVENT("die", LABELS), CONTAINER("exited", ""), 1 },
                { "it was removed", "stream " EVENT("destroy", LABELS), "404 {}", 1 },
                { "Podman's word", "stream " EVENT("died", LABELS), CONTAINER("exited", ""), 1 },
                { "it lives all the same", "stream " EVENT("die", LABELS), CONTAINER("running", ""),
                  0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fake_response responses[] = { { "GET /events", cases[i].event },
                                                     { "GET /containers/" NAME,
                                                       cases[i].container },
                                                     { 0 } };

                check_case(cases[i].name);
                begin(responses);
                wire_until(&x.loop, fake_engine_got_request(&x.engine, "GET /containers/" NAME));
                wire_settle(&x.loop);
                check_i64_eq(x.died, cases[i].died);
                check_i64_eq(x.watching, 1);
                end();
        }
}

static void an_engine_that_is_away_is_a_fact(void **state)
{
        static const struct fake_response responses[] = { { "GET /events", "stream " }, { 0 } };

        begin(responses);
        wire_until(&x.loop, x.watching == 1);
        fake_engine_away(&x.engine);
        check_i64_eq(request(ENGINE_INSPECT), ERR_UNAVAILABLE);
        check_true(strstr(x.text, "is it running?") != NULL);
        check_i64_eq(request(ENGINE_PROBE), ERR_CODE_MAX_);
        check_i64_eq(x.facts, 1);
        fake_engine_listen(&x.engine);
        wire_until(&x.loop, x.watching >= 2);
        end();
}

static void a_pull_that_fails_says_why(void **state)
{
        static const struct {
                const char *response, *says;
        } cases[] = {
                { "200 {\"status\":\"Pulling\"}\r\n{\"error\":\"manifest unknown\"}\r\n",
                  "manifest unknown" },
                { "404 {\"message\":\"no such repository\"}", "no such repository" },
                { "200 {\"status\":\"Done\"}", "404" }, /* and it is not there all the same */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fake_response responses[] = {
                        { "POST /images/create?fromImage=debian%3A12", cases[i].response }, { 0 }
                };

                check_case(cases[i].says);
                begin(responses);
                check_i64_eq(request(ENGINE_CREATE), ERR_NOT_FOUND);
                if (!strstr(x.text, cases[i].says))
                        fail_msg("%s: %s", cases[i].says, x.text);
                end();
        }
}

static void a_stream_to_an_agent_that_is_not_given(void **state)
{
        static const struct {
                const char *exec, *start;
                enum err_code code;
        } cases[] = {
                { "404 {\"message\":\"no such container\"}", NULL, ERR_NOT_FOUND },
                { "409 {\"message\":\"not running\"}", NULL, ERR_UNAVAILABLE },
                { "201 {\"Id\":\"a/../b\"}", NULL, ERR_UNAVAILABLE },
                { "201 {\"Id\":\"e1\"}", "200 {}", ERR_UNAVAILABLE },
                { "201 {\"Id\":\"e1\"}", "HTTP/1.1", ERR_UNAVAILABLE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fake_response responses[] = {
                        { "POST /containers/" NAME "/exec", cases[i].exec },
                        { "POST /exec/e1/start", cases[i].start ? cases[i].start : "500 " },
                        { 0 }
                };

                check_case(cases[i].exec);
                begin_with(responses, ENGINE_REACH_EXEC);
                check_i64_eq(request(ENGINE_CONNECT), cases[i].code);
                check_i64_eq(x.fd, -EBADF);
                end();
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(odd_answers_are_errors_in_words),
                cmocka_unit_test(how_a_container_is_doing),
                cmocka_unit_test(a_create_that_fails_is_undone),
                cmocka_unit_test(a_create_is_undone_when_the_engine_is_back),
                cmocka_unit_test(what_hutchd_leaves_behind_is_undone),
                cmocka_unit_test(a_sandbox_that_is_made_gets_a_connection),
                cmocka_unit_test(a_named_volume_is_for_its_tenant),
                cmocka_unit_test(a_part_of_a_named_volume),
                cmocka_unit_test(a_volume_of_which_parts_are_bound_stays),
                cmocka_unit_test(lists_are_read_one_by_one),
                cmocka_unit_test(an_event_is_a_reason_to_look),
                cmocka_unit_test(an_engine_that_is_away_is_a_fact),
                cmocka_unit_test(a_pull_that_fails_says_why),
                cmocka_unit_test(a_stream_to_an_agent_that_is_not_given),
        };

        return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
