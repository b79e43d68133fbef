/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api.h"

#include "client/decode.h"
#include "client/framing.h"
#include "tests/lib/check.h"

/*
 * Memory that is refused. Each case is repeated, and each time another allocation fails, of ours or of the
 * libraries below, until none does any more. What it does must either work or say HUTCH_NO_MEMORY.
 */

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define OWN_MALLOC 0 /* the sanitizer has one */
#else
#define OWN_MALLOC 1
#endif

static int64_t countdown = -1; /* negative: none fails */

static maybe_unused bool fails(void)
{
        return countdown >= 0 && countdown-- == 0;
}

#if OWN_MALLOC
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static void *failing_malloc(size_t size)
{
        return fails() ? NULL : __libc_malloc(size);
}

static void *failing_calloc(size_t nmemb, size_t size)
{
        return fails() ? NULL : __libc_calloc(nmemb, size);
}

static void *failing_realloc(void *ptr, size_t size)
{
        return fails() ? NULL : __libc_realloc(ptr, size);
}

extern __typeof__(malloc) malloc __attribute__((alias("failing_malloc")));
extern __typeof__(calloc) calloc __attribute__((alias("failing_calloc")));
extern __typeof__(realloc) realloc __attribute__((alias("failing_realloc")));
#endif

static void fail_each_allocation(int (*job)(void), int works)
{
        unsigned failed = 0, n = 0;
        bool more = true;
        int r;

        (void) job(); /* what is set up once and stays */
        for (; more; n++) {
                countdown = n;
                r = job();
                more = countdown < 0;
                countdown = -1;
                if (r != works)
                        check_i64_eq(r, HUTCH_NO_MEMORY);
                failed += r != works;
        }
        check_true(failed > 0);
        check_i64_eq(r, works);
}

/* A macro for the name of the test, which a skip tells. */
#define each_allocation_fails_once(job, works)                            \
        do {                                                              \
                if (!OWN_MALLOC)                                          \
                        skip_because("the sanitizer has its own malloc"); \
                fail_each_allocation(job, works);                         \
        } while (0)

/* --- answers --- */

static int decode_all(void)
{
        static const struct str sandbox =
                STR("{\"id\":\"a\",\"status\":{\"state\":\"Running\"},\"metadata\":{\"k\":\"v\"},"
                    "\"entrypoint\":[\"x\"]}");
        int code = 0;
        struct hutch_sandbox *s = decode_result(&sandbox_decoder, sandbox, NULL, &code);
        struct hutch_file_list *l = s ? decode_result(&files_decoder,
                                                      STR("[{\"path\":\"/a\"},{\"path\":\"/b\"}]"),
                                                      NULL, &code)
                                      : NULL;
        struct hutch_endpoint *e =
                l ? decode_result(&endpoint_decoder,
                                  STR("{\"endpoint\":\"h\",\"headers\":{\"a\":\"b\"}}"),
                                  &STR("http"), &code)
                  : NULL;

        hutch_sandbox_free(s);
        hutch_file_list_free(l);
        hutch_endpoint_free(e);
        return code;
}

static void decoding(void **state)
{
        each_allocation_fails_once(decode_all, 0);
}

/* --- calls --- */

static int make_client(struct hutch_client **ret)
{
        static const struct hutch_pair header = { "X-More", "x" };
        struct hutch_client_options o = hutch_client_options_init();

        o.headers = &header;
        o.n_headers = 1;
        o.user_agent = "test";
        return hutch_client_new("http://127.0.0.1:1", "key", &o, ret);
}

static int client_alone(void)
{
        struct hutch_client *c = NULL;
        int r = make_client(&c);

        hutch_client_free(c);
        return r;
}

static void clients(void **state)
{
        each_allocation_fails_once(client_alone, 0);
}

/* No one listens at port 1, so this is as far as it goes. */
static int with_agent(int (*call_once)(struct hutch_client *, struct hutch_endpoint *))
{
        static const struct hutch_pair header = { "Token", "x" };
        struct hutch_client *c = NULL;
        struct hutch_endpoint *e = NULL;
        int r = make_client(&c);

        if (r == 0)
                r = hutch_endpoint_new("127.0.0.1:1", &header, 1, &e);
        if (r == 0)
                r = call_once(c, e);
        hutch_endpoint_free(e);
        hutch_client_free(c);
        return r;
}

static int call_create(struct hutch_client *c, struct hutch_endpoint *e)
{
        struct hutch_sandbox_options o = hutch_sandbox_options_init();
        struct hutch_sandbox *s = NULL;

        o.image = "x";
        o.idempotency_key = "k";
        return hutch_create_sandbox(c, &o, &s, NULL);
}

static int call_run(struct hutch_client *c, struct hutch_endpoint *e)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_command_result *r = NULL;

        o.command = "true";
        return hutch_run_command(c, e, &o, &r, NULL);
}

static int call_upload(struct hutch_client *c, struct hutch_endpoint *e)
{
        struct hutch_file_upload f = hutch_file_upload_init();

        f.path = "/a";
        f.source.data = "x";
        f.source.n = 1;
        return hutch_upload_files(c, e, &f, 1, NULL);
}

static int call_tunnel(struct hutch_client *c, struct hutch_endpoint *e)
{
        struct hutch_tunnel *t = NULL;

        return hutch_open_tunnel(c, e, 80, &t, NULL);
}

static void on_done(struct hutch_call *call, int result)
{
        *(int *) call->data = result;
}

static int call_on_a_loop(struct hutch_client *c, struct hutch_endpoint *e)
{
        struct hutch_call call = hutch_call_init();
        struct hutch_loop *l = NULL;
        int result = 1, r = hutch_loop_new(NULL, &l);

        if (r < 0)
                return r;
        call.loop = l;
        call.done = on_done;
        call.data = &result;
        r = hutch_ping(c, e, &call);
        while (r == 0 && result > 0)
                (void) hutch_loop_run(l, -1);
        hutch_loop_free(l);
        return r < 0 ? r : result;
}

#define CALL(name)                                                          \
        static int complete_##name(void)                                    \
        {                                                                   \
                return with_agent(call_##name);                             \
        }                                                                   \
        static void calls_##name(void **state)                              \
        {                                                                   \
                each_allocation_fails_once(complete_##name, HUTCH_CONNECT); \
        }

CALL(create)
CALL(run)
CALL(upload)
CALL(tunnel)
CALL(on_a_loop)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(decoding),        cmocka_unit_test(clients),
                cmocka_unit_test(calls_create),    cmocka_unit_test(calls_run),
                cmocka_unit_test(calls_upload),    cmocka_unit_test(calls_tunnel),
                cmocka_unit_test(calls_on_a_loop),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
