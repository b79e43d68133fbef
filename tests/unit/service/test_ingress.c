/* SPDX-License-Identifier: Apache-2.0 */
#include "service/service.h"

#include <unistd.h>

#include "base/base.h"
#include "http/route.h"
#include "service/service_impl.h"
#include "tests/lib/service_world.h"

static struct service_world w;

static int set_up(void **state)
{
        service_world_open(&w, NULL);
        return 0;
}

static int tear_down(void **state)
{
        service_world_close(&w);
        return 0;
}

static const struct create_options plain = { .timeout = 600 };

/* --- streams --- */

struct connecting {
        struct service_connect connect;
        bool done;
        int result;
};

static void connect_done(struct op *op, int result)
{
        struct connecting *c = container_of(op, struct connecting, connect.req.op);

        c->result = result;
        c->done = true;
}

static void connect_start(struct connecting *c, const char *tenant, const char *id)
{
        *c = (struct connecting){ .connect = { .caller = world_caller(tenant),
                                               .id = str_from(id) } };
        op_init(&c->connect.req.op, connect_done);
        service_connect(w.service, &c->connect);
        check_false(c->done);
}

static int connect_to(const char *tenant, const char *id, usec_t *ret_retry_after)
{
        struct connecting c;

        connect_start(&c, tenant, id);
        service_world_until(&w, c.done);
        check_i64_eq(c.connect.stream.fd >= 0, c.result == 0);
        if (c.connect.stream.fd >= 0)
                (void) close(c.connect.stream.fd);
        if (ret_retry_after)
                *ret_retry_after = c.connect.req.retry_after;
        return c.result;
}

static void a_stream_leads_to_the_agent(void **state)
{
        struct made m = world_create(&w, &plain);
        struct connecting c;
        char answer[256] = { 0 };
        size_t n = 0;

        connect_start(&c, "t", m.id);
        service_world_until(&w, c.done);
        check_i64_eq(c.result, 0);
        check_i64_eq(write(c.connect.stream.fd, "GET /ping HTTP/1.1\r\nHost: a\r\n\r\n", 32), 32);
        while (!strstr(answer, "\r\n\r\n")) {
                ssize_t r = read(c.connect.stream.fd, answer + n, sizeof(answer) - 1 - n);

                n += r > 0 ? (size_t) r : 0;
                service_world_turn(&w);
        }
        check_true(strstr(answer, "HTTP/1.1 200") == answer);
        (void) close(c.connect.stream.fd);
}

static void only_who_may_see_it_comes_in_and_only_while_it_runs(void **state)
{
        struct made m = world_create(&w, &plain);
        struct creating *creating;
        char pending[64] = "";
        usec_t retry_after = 0;

        check_i64_eq(connect_to("u", m.id, NULL), ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(connect_to("t", "none", NULL), ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(world_command(&w, service_pause, m.id), 0);
        check_i64_eq(connect_to("t", m.id, NULL), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_command(&w, service_resume, m.id), 0);
        check_i64_eq(connect_to("t", m.id, NULL), 0);

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_CREATE);
        creating = world_create_start(&w, &plain);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_CREATE) == 1);
        for (const struct sandbox *r = registry_next(w.registry, STR_NULL); r;
             r = registry_next(w.registry, r->id))
                if (r->status.state == STATE_PENDING)
                        (void) snprintf(pending, sizeof(pending), "%.*s", STR_ARG(r->id));
        check_i64_eq(connect_to("t", pending, &retry_after), ERR_RETURN(ERR_UNAVAILABLE));
        check_true(retry_after > 0);
        driver_fake_release(w.runtime);
        service_world_idle(&w);
        (void) world_create_end(creating);
}

static void who_goes_away_leaves_no_stream_behind(void **state)
{
        struct made m = world_create(&w, &plain);
        struct connecting c;

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_CONNECT);
        connect_start(&c, "t", m.id);
        service_world_until(&w, driver_fake_held(w.runtime, DRIVER_CALL_CONNECT) == 1);
        op_cancel(&c.connect.req.op);
        service_world_until(&w, c.done);
        check_i64_eq(c.result, ERR_RETURN(ERR_CANCELED));
        check_i64_eq(c.connect.stream.fd, -EBADF);
        check_i64_eq(service_stats(w.service).under_way, 0);
}

static void a_stop_ends_visits(void **state)
{
        struct made m = world_create(&w, &plain);
        struct connecting c;

        driver_fake_hold(w.runtime, 1U << DRIVER_CALL_CONNECT);
        connect_start(&c, "t", m.id);
        service_world_down(&w);
        check_true(c.done && c.result == ERR_RETURN(ERR_CANCELED));
}

/* --- commands and files --- */

struct reading {
        struct service_read read;
        bool done;
        int result;
};

static void read_done(struct op *op, int result)
{
        struct reading *r = container_of(op, struct reading, read.req.op);

        r->result = result;
        r->done = true;
}

struct executing {
        struct service_exec exec;
        bool done;
        int result;
};

static void exec_done(struct op *op, int result)
{
        struct executing *x = container_of(op, struct executing, exec.req.op);

        x->result = result;
        x->done = true;
}

static void serve_file(struct http_req *req)
{
        http_reply(req, 200, STR("application/octet-stream"), STR("content"));
}

static const struct http_route routes[] = {
        { METHOD_GET, "/files/download", .scope = HTTP_SCOPE_PUBLIC, .exec = serve_file },
};

static const struct http_api agent = {
        .name = "agent", .prefix = "", .routes = routes, .n_routes = ARRAY_SIZE(routes)
};

static void files_come_through_the_agent(void **state)
{
        struct made m;
        struct reading r = { .read = { .caller = world_caller("t"), .read.path = STR("a") } };

        driver_fake_set_agent(w.runtime, &agent, NULL);
        m = world_create(&w, &plain);
        r.read.id = str_from(m.id);
        op_init(&r.read.req.op, read_done);
        service_read_file(w.service, &r.read);
        service_world_until(&w, r.done);
        check_i64_eq(r.result, 0);
        check_str_eq(buf_str(&r.read.read.bytes), "content");
        agent_read_done(&r.read.read);
}

static void an_agent_that_makes_no_sense_is_an_error(void **state)
{
        struct made m = world_create(&w, &plain);
        struct executing x = { .exec = { .caller = world_caller("t"),
                                         .id = str_from(m.id),
                                         .exec.command = STR("true") } };

        op_init(&x.exec.req.op, exec_done);
        service_exec(w.service, &x.exec);
        service_world_until(&w, x.done);
        check_true(x.result < 0);
        check_true(x.exec.req.err.message[0] != '\0');
        agent_exec_done(&x.exec.exec);

        check_i64_eq(world_command(&w, service_pause, m.id), 0);
        x = (struct executing){ .exec = { .caller = world_caller("t"),
                                          .id = str_from(m.id),
                                          .exec.command = STR("true") } };
        op_init(&x.exec.req.op, exec_done);
        service_exec(w.service, &x.exec);
        service_world_until(&w, x.done);
        check_i64_eq(x.result, ERR_RETURN(ERR_CONFLICT));
}

/* --- renewal by access --- */

static int64_t end_of(const char *id)
{
        return world_find(&w, id)->expiry->mono_usec;
}

static void an_access_renews_once_a_minute_if_requested(void **state)
{
        struct made m = world_create(&w, &(struct create_options){
                                                 .timeout = 310,
                                                 .extension = "access.renew.extend.seconds=300" });
        struct made other = world_create(&w, &(struct create_options){ .timeout = 310 });
        int64_t began = (int64_t) w.clock.mono_now, end = end_of(m.id);

        check_i64_eq(connect_to("t", m.id, NULL), 0);
        service_world_idle(&w);
        check_i64_eq(end_of(m.id), end); /* would be shorter */
        service_world_advance(&w, 61 * USEC_PER_SEC);
        check_i64_eq(connect_to("t", m.id, NULL), 0);
        check_i64_eq(connect_to("t", other.id, NULL), 0);
        service_world_idle(&w);
        check_i64_eq(end_of(m.id), began + (int64_t) (361 * USEC_PER_SEC));
        check_i64_eq(end_of(other.id), end);
        service_world_advance(&w, 30 * USEC_PER_SEC);
        check_i64_eq(connect_to("t", m.id, NULL), 0);
        service_world_idle(&w);
        check_i64_eq(end_of(m.id), began + (int64_t) (361 * USEC_PER_SEC));
        service_world_advance(&w, 30 * USEC_PER_SEC);
        check_i64_eq(connect_to("t", m.id, NULL), 0);
        service_world_idle(&w);
        check_i64_eq(end_of(m.id), began + (int64_t) (421 * USEC_PER_SEC));
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(a_stream_leads_to_the_agent),
                T(only_who_may_see_it_comes_in_and_only_while_it_runs),
                T(who_goes_away_leaves_no_stream_behind),
                T(a_stop_ends_visits),
                T(files_come_through_the_agent),
                T(an_agent_that_makes_no_sense_is_an_error),
                T(an_access_renews_once_a_minute_if_requested),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
