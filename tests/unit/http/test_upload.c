/* SPDX-License-Identifier: Apache-2.0 */
#include "http/upload.h"

#include "base/base.h"
#include "tests/lib/http_peer.h"

static struct world world;
static struct http_upload upload;
static struct http_upload_options options;
static struct buf trace;
static int started, ends, aborts, abort_reason;
static int stop_with;         /* returned for data */
static bool response_at_once; /* when data comes */

static int on_part(struct multipart *mp, const struct multipart_part *part)
{
        buf_addf(&trace, "[%.*s", STR_ARG(part->name));
        if (part->filename.p)
                buf_addf(&trace, " %.*s", STR_ARG(part->filename));
        buf_add_char(&trace, ':');
        return 0;
}

static int on_data(struct multipart *mp, const char *p, size_t n)
{
        struct http_upload *u = http_upload_of(mp);

        buf_add(&trace, p, n);
        if (response_at_once && u->req->res.state == HTTP_RES_NONE)
                http_reply_empty(u->req, 409);
        return stop_with;
}

static int on_part_end(struct multipart *mp)
{
        buf_add_char(&trace, ']');
        return 0;
}

static void on_end(struct http_upload *u)
{
        ends++;
        http_reply(u->req, 200, STR("text/plain"), buf_str(&trace));
}

static void on_abort(struct http_upload *u, int reason)
{
        aborts++;
        abort_reason = reason;
}

static const struct http_upload_ops ops = { { on_part, on_data, on_part_end }, on_end, on_abort };

static void exec_upload(struct http_req *req)
{
        started = http_upload_start(&upload, req, &ops, &options);
}

static const struct http_route routes[] = {
        { METHOD_POST, "/upload", .scope = HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = exec_upload },
};

static const struct http_api api = { "test", "", routes, ARRAY_SIZE(routes) };

static int set_up(void **state)
{
        world_open(&world, NULL, &api);
        buf_init(&trace, MiB);
        options = (struct http_upload_options){ 0 };
        started = ends = aborts = abort_reason = stop_with = 0;
        response_at_once = false;
        return 0;
}

static int tear_down(void **state)
{
        world_close(&world);
        buf_done(&trace);
        return 0;
}

#define TYPE "multipart/form-data; boundary=B"
#define FORM                                                                                     \
        "--B\r\nContent-Disposition: form-data; name=\"metadata\"; filename=\"m\"\r\n\r\n{}\r\n" \
        "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nbytes\r\n"  \
        "--B--\r\n"

static void send_form(struct peer *p, const char *type, const char *form)
{
        char head[256];

        (void) snprintf(head, sizeof(head),
                        "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\n"
                        "Content-Length: %zu\r\n\r\n",
                        type, strlen(form));
        peer_sendz(p, head);
        peer_sendz(p, form);
}

static void takes_parts(void **state)
{
        struct peer p;
        struct peer_reply a;

        peer_open(&p, &world);
        send_form(&p, TYPE, FORM);
        a = peer_response(&p);
        check_i64_eq(a.status, 200);
        check_str_eq(a.body, "[metadata m:{}][file f:bytes]");
        check_i64_eq(ends, 1);
        check_i64_eq(aborts, 0);
        peer_close(&p);
}

static void takes_chunks_of_any_size(void **state)
{
        struct peer p;
        struct peer_reply a;

        peer_open(&p, &world);
        peer_sendz(&p, "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: " TYPE "\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n");
        for (const char *c = FORM; *c; c++) {
                char chunk[] = { '1', '\r', '\n', *c, '\r', '\n' };

                peer_send(&p, str_of(chunk, sizeof(chunk)));
        }
        peer_sendz(&p, "0\r\n\r\n");
        a = peer_response(&p);
        check_str_eq(a.body, "[metadata m:{}][file f:bytes]");
        peer_close(&p);
}

static void says_what_is_wrong(void **state)
{
        static const struct {
                const char *type, *form;
                int status;
                const char *code;
                int aborts;
        } cases[] = {
                { "application/json", "{}", 415, "UNSUPPORTED_MEDIA_TYPE", 0 },
                { "multipart/form-data", FORM, 400, "INVALID_MULTIPART", 0 },
                { TYPE, "--B\r\nContent-Disposition: form-data\r\n\r\n", 400, "INVALID_MULTIPART",
                  1 },
                { TYPE, "--B\r\nContent-Disposition: form-data; name=a\r\n\r\nhalf", 400,
                  "INVALID_MULTIPART", 1 },
                { TYPE, "", 400, "INVALID_MULTIPART", 1 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct peer p;
                struct peer_reply a;

                check_case(cases[i].form);
                aborts = 0;
                peer_open(&p, &world);
                send_form(&p, cases[i].type, cases[i].form);
                a = peer_response(&p);
                check_i64_eq(a.status, cases[i].status);
                check_true(memmem(a.body.p, a.body.n, cases[i].code, strlen(cases[i].code))
                           != NULL);
                check_i64_eq(aborts, cases[i].aborts);
                check_i64_eq(started < 0, cases[i].aborts == 0);
                check_i64_eq(ends, 0);
                /* The connection is in step. */
                buf_reset(&trace);
                send_form(&p, TYPE, FORM);
                check_i64_eq(peer_response(&p).status, 200);
                ends = 0;
                peer_close(&p);
        }
}

static void words_of_the_api(void **state)
{
        struct peer p;
        struct peer_reply a;

        options.type_status = 400;
        options.type_code = "INVALID_FILE";
        peer_open(&p, &world);
        send_form(&p, "text/plain", "x");
        a = peer_response(&p);
        check_i64_eq(a.status, 400);
        check_true(str_starts_with(a.body, STR("{\"code\":\"INVALID_FILE\"")));
        peer_close(&p);
}

static void too_large(void **state)
{
        struct peer p;

        check_case("announced");
        options.body_max = 20;
        peer_open(&p, &world);
        send_form(&p, TYPE, FORM);
        check_i64_eq(peer_response(&p).status, 413);
        check_i64_eq(started, -EMSGSIZE);
        check_i64_eq(aborts, 0);

        check_case("in chunks");
        peer_sendz(&p, "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: " TYPE "\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n"
                       "10\r\n0123456789abcdef\r\n0\r\n\r\n");
        check_i64_eq(peer_response(&p).status, 413);
        check_i64_eq(aborts, 1);
        check_i64_eq(abort_reason, -EMSGSIZE);
        peer_close(&p);
}

static void a_callback_may_give_up(void **state)
{
        struct peer p;

        stop_with = -ENOSPC;
        peer_open(&p, &world);
        send_form(&p, TYPE, FORM);
        check_i64_eq(peer_response(&p).status, 500);
        check_i64_eq(aborts, 1);
        check_i64_eq(abort_reason, -ENOSPC);
        peer_close(&p);
}

static void an_early_answer_ends_the_upload(void **state)
{
        struct peer p;

        response_at_once = true;
        peer_open(&p, &world);
        send_form(&p, TYPE, FORM);
        check_i64_eq(peer_response(&p).status, 409);
        check_i64_eq(ends, 0);
        check_i64_eq(aborts, 1);
        check_i64_eq(abort_reason, -ECANCELED);
        peer_close(&p);
}

static void the_client_may_leave(void **state)
{
        struct peer p;

        peer_open(&p, &world);
        peer_sendz(&p, "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Type: " TYPE "\r\n"
                       "Content-Length: 1000\r\n\r\n--B\r\nContent-Disposition: form-data; "
                       "name=a\r\n\r\nhalf");
        world_turn(&world, 3);
        peer_close(&p);
        while (aborts == 0)
                world_turn(&world, 1);
        check_i64_eq(abort_reason, -ECONNRESET);
        check_i64_eq(ends, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                TEST(takes_parts),
                TEST(takes_chunks_of_any_size),
                TEST(says_what_is_wrong),
                TEST(words_of_the_api),
                TEST(too_large),
                TEST(a_callback_may_give_up),
                TEST(an_early_answer_ends_the_upload),
                TEST(the_client_may_leave),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
