/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "driver/native/native_impl.h"
#include "os/fd.h"
#include "os/socket.h"

/* --- sandboxes whose agent's socket is at hand --- */

struct native_instance *native_instance_get(const struct native *n, struct str id)
{
        struct map_node *node = map_get(&n->instances, id);

        return node ? container_of(node, struct native_instance, by_id) : NULL;
}

static void forget(struct native *n, struct native_instance *b)
{
        map_remove(&n->instances, &b->by_id);
        list_remove(&b->node);
        (void) fd_close(b->socket);
        free(b);
}

void native_instance_remove(struct native *n, struct str id)
{
        struct native_instance *b = native_instance_get(n, id);

        if (b)
                forget(n, b);
}

/* A descriptor for each sandbox is a shortcut: of those for which there is none, the warden is asked. */
void native_instance_add(struct native *n, struct str id, int socket)
{
        struct native_instance *b;

        native_instance_remove(n, id);
        if (n->instances.n >= n->instances_max) {
                (void) fd_close(socket);
                return;
        }
        b = xnew(struct native_instance);
        b->socket = socket;
        (void) snprintf(b->id, sizeof(b->id), "%.*s", STR_ARG(id));
        map_add(&n->instances, &b->by_id, str_from(b->id));
        list_append(&n->instance_list, &b->node);
}

int native_connect(int socket, int *ret_fd)
{
        struct sock_addr addr;
        char path[64];
        int r;

        (void) snprintf(path, sizeof(path), "unix:/proc/self/fd/%d", socket);
        r = sock_addr_from_string(str_from(path), &addr);
        return r < 0 ? r : sock_connect(&addr, ret_fd);
}

/* --- in words --- */

struct driver_health native_health(const struct instance_status *s,
                                   char text[static NATIVE_TEXT_MAX])
{
        static const char *const reasons[WARDEN_EXIT_MAX_] = {
                [WARDEN_EXIT_CODE] = "EXITED",
                [WARDEN_EXIT_SIGNAL] = "SIGNALED",
                [WARDEN_EXIT_OOM] = "OOM_KILLED",
                [WARDEN_EXIT_LOST] = "LOST",
        };
        const char *name = s->reason == WARDEN_EXIT_SIGNAL ? sigabbrev_np((int) s->code) : NULL;

        *text = '\0';
        if (s->reason == WARDEN_EXIT_CODE)
                (void) snprintf(text, NATIVE_TEXT_MAX, "it ended with exit code %u", s->code);
        else if (s->reason == WARDEN_EXIT_SIGNAL)
                (void) snprintf(text, NATIVE_TEXT_MAX, "its agent was killed by signal %u%s%s",
                                s->code, name ? ", SIG" : "", name ? name : "");
        else if (s->reason == WARDEN_EXIT_OOM)
                (void) snprintf(text, NATIVE_TEXT_MAX,
                                "its agent was killed because its memory was used up");
        else if (s->reason == WARDEN_EXIT_LOST)
                (void) snprintf(text, NATIVE_TEXT_MAX,
                                "it ended while nobody could see how: a restart of the machine, "
                                "or of the warden");
        return (struct driver_health){ .life = (int) s->status,
                                       .reason = reasons[s->reason],
                                       .message = str_from(text) };
}

int native_fail(struct driver_req *req, const struct native_reply *a)
{
        return err_set(&req->err, err_code_from_errno(a->result), "%s", a->text);
}

static int fail_not_found(struct driver_req *req)
{
        return err_set(&req->err, ERR_NOT_FOUND, "there is no such sandbox");
}

/* --- calls that are one question --- */

struct asking {
        struct native_request ask;
        struct native *n;
        struct driver_req *req;
        char id[SANDBOX_ID_MAX + 1];
};

static void finish(struct asking *x, int result)
{
        struct driver_req *req = x->req;

        native_request_drop(&x->ask);
        free(x);
        req->_impl = NULL;
        driver_finish(req, result);
}

static struct str id_of(const struct asking *x)
{
        return str_from(x->id);
}

static bool is_gone(const struct native_reply *a)
{
        return a->result == ERR_RETURN(ERR_NOT_FOUND);
}

static void ask(struct driver *driver, struct driver_req *req, enum warden_msg call,
                native_replied_fn *replied)
{
        struct asking *x = xnew(struct asking);

        x->n = native_of(driver);
        x->req = req;
        (void) snprintf(x->id, sizeof(x->id), "%.*s", STR_ARG(driver_req_record(req)->id));
        x->ask = (struct native_request){
                .call = call, .id = x->id, .record = -EBADF, .again = true, .replied = replied
        };
        req->_impl = x;
        native_request(x->n, &x->ask);
}

#define SIMPLE_CALL(q) container_of(q, struct asking, ask)

/* Destroyed by the one warden and asked of the next: it is not there, which is fine. */
static void destroyed(struct native_request *q, const struct native_reply *a)
{
        struct asking *x = SIMPLE_CALL(q);

        finish(x, a->result < 0 ? native_fail(x->req, a) : 0);
}

static void run_destroy(struct driver *driver, struct driver_req *req)
{
        native_instance_remove(native_of(driver), driver_req_record(req)->id);
        ask(driver, req, WARDEN_MSG_DESTROY, destroyed);
}

static void keep_socket(struct native *n, struct str id, const struct native_reply *a)
{
        if (instance_is_alive(&a->wire->state))
                native_instance_add(n, id, TAKE_FD(a->fds[WARDEN_FD_SOCKET]));
        else
                native_instance_remove(n, id);
}

static void inspected(struct native_request *q, const struct native_reply *a)
{
        struct asking *x = SIMPLE_CALL(q);
        struct driver_inspect *i = DRIVER_AS(inspect, x->req);
        char text[NATIVE_TEXT_MAX];

        if (is_gone(a)) {
                native_instance_remove(x->n, id_of(x));
                i->health = (struct driver_health){ .life = RUNTIME_GONE };
                finish(x, 0);
                return;
        }
        if (a->result < 0) {
                finish(x, native_fail(x->req, a));
                return;
        }
        keep_socket(x->n, id_of(x), a);
        i->health = native_health(&a->wire->state, text);
        i->health.message = driver_keep(x->req, i->health.message);
        finish(x, 0);
}

static void run_inspect(struct driver *driver, struct driver_req *req)
{
        ask(driver, req, WARDEN_MSG_INSPECT, inspected);
}

static void measured(struct native_request *q, const struct native_reply *a)
{
        struct asking *x = SIMPLE_CALL(q);
        struct driver_usage *u = DRIVER_AS(usage, x->req);

        if (a->result < 0) {
                finish(x, native_fail(x->req, a));
                return;
        }
        u->cpu_usec = a->wire->cpu_usec;
        u->memory_bytes = a->wire->memory_bytes;
        u->processes = a->wire->processes;
        finish(x, 0);
}

static void run_usage(struct driver *driver, struct driver_req *req)
{
        ask(driver, req, WARDEN_MSG_USAGE, measured);
}

/* --- pause and resume --- */

/* Asked a second time, a warden may find it done: by the one before, for us. */
static void inspected_after_pause(struct native_request *q, const struct native_reply *a)
{
        struct asking *x = SIMPLE_CALL(q);
        const bool paused = x->req->_call == DRIVER_CALL_PAUSE;

        if (a->result < 0)
                finish(x, native_fail(x->req, a));
        else if (a->wire->state.status == (paused ? RUNTIME_PAUSED : RUNTIME_RUNNING))
                finish(x, 0);
        else
                finish(x, err_set(&x->req->err, ERR_CONFLICT, "the sandbox is %s",
                                  runtime_status_to_string((int) a->wire->state.status)));
}

static void paused(struct native_request *q, const struct native_reply *a)
{
        struct asking *x = SIMPLE_CALL(q);

        if (a->result == ERR_RETURN(ERR_CONFLICT) && q->interrupted) {
                q->call = WARDEN_MSG_INSPECT;
                q->replied = inspected_after_pause;
                native_request(x->n, q);
                return;
        }
        finish(x, a->result < 0 ? native_fail(x->req, a) : 0);
}

static void run_pause(struct driver *driver, struct driver_req *req)
{
        ask(driver, req, WARDEN_MSG_PAUSE, paused);
}

static void run_resume(struct driver *driver, struct driver_req *req)
{
        ask(driver, req, WARDEN_MSG_RESUME, paused);
}

/* --- connect --- */

static int connect_by(struct native *n, struct str id, struct driver_connect *c)
{
        struct native_instance *b = native_instance_get(n, id);
        int r = b ? native_connect(b->socket, &c->fd) : -ENOENT;

        if (r == 0 || r == -ENOENT)
                return r;
        native_instance_remove(n, id);
        return err_set(&c->req.err, ERR_UNAVAILABLE, "its agent does not answer: %s", err_text(r));
}

static void found_for_connect(struct native_request *q, const struct native_reply *a)
{
        struct asking *x = SIMPLE_CALL(q);
        struct driver_connect *c = DRIVER_AS(connect, x->req);
        int r;

        if (a->result < 0) {
                finish(x, is_gone(a) ? fail_not_found(x->req) : native_fail(x->req, a));
                return;
        }
        if (!instance_is_alive(&a->wire->state)) {
                finish(x, err_set(&x->req->err, ERR_UNAVAILABLE, "the sandbox has ended"));
                return;
        }
        r = native_connect(a->fds[WARDEN_FD_SOCKET], &c->fd);
        if (r < 0)
                r = err_set(&x->req->err, ERR_UNAVAILABLE, "its agent does not answer: %s",
                            err_text(r));
        else
                keep_socket(x->n, id_of(x), a);
        finish(x, r);
}

/* Of one that is not at hand, the warden is asked; it is at hand then. */
static void run_connect(struct driver *driver, struct driver_req *req)
{
        struct driver_connect *c = DRIVER_AS(connect, req);
        int r = connect_by(native_of(driver), c->record->id, c);

        if (r == -ENOENT)
                ask(driver, req, WARDEN_MSG_INSPECT, found_for_connect);
        else
                driver_finish(req, r);
}

/* --- news --- */

void native__event(struct native *n, const struct warden_event *news)
{
        char text[NATIVE_TEXT_MAX];
        struct driver_health how;

        if (!sandbox_id_is_valid(str_from(news->id)))
                return;
        if (news->kind == WARDEN_EVENT_OOM) {
                log_info(n->log, "a process of sandbox '%s' was killed: its memory is used up",
                         news->id);
                return;
        }
        native_instance_remove(n, str_from(news->id));
        if (native__exited_in_create(n, str_from(news->id)))
                return;
        how = native_health(&news->state, text);
        driver_notify_died(&n->driver, str_from(news->id), &how);
}

/* --- life cycle --- */

/* What is begun with a sandbox comes to its end: the warden does it anyway, and somebody should know. */
static void run_cancel(struct driver *driver, struct driver_req *req)
{
        (void) driver;
        switch (req->_call) {
        case DRIVER_CALL_CREATE:
                native__cancel_create(req);
                break;
        case DRIVER_CALL_SCAN:
                native__cancel_scan(req);
                break;
        case DRIVER_CALL_DESTROY:
        case DRIVER_CALL_PAUSE:
        case DRIVER_CALL_RESUME:
                break;
        default:
                if (req->_impl)
                        finish(req->_impl, err_set(&req->err, ERR_CANCELED, "canceled"));
                break;
        }
}

void native__handle_closed(struct native *n)
{
        if (--n->open > 0)
                return;
        map_done(&n->instances);
        map_done(&n->creates);
        driver_closed(&n->driver);
}

static void agents_freed(void *data)
{
        native__handle_closed(data);
}

static void run_close(struct driver *driver)
{
        struct native *n = native_of(driver);

        native_request_drop(&n->look);
        list_for_each (node, &n->instance_list)
                forget(n, container_of(node, struct native_instance, node));
        n->open++;
        agents_free(n->agents, agents_freed, n);
        native_link_close(n);
}

static const struct driver_ops ops = {
        .name = "native",
        .caps = DRIVER_PAUSE | DRIVER_LIMITS | DRIVER_ISOLATION | DRIVER_USAGE
                | DRIVER_NETWORKS,
        .calls = {
                [DRIVER_CALL_CREATE] = native__create, [DRIVER_CALL_DESTROY] = run_destroy,
                [DRIVER_CALL_PAUSE] = run_pause,       [DRIVER_CALL_RESUME] = run_resume,
                [DRIVER_CALL_INSPECT] = run_inspect,   [DRIVER_CALL_SCAN] = native__scan,
                [DRIVER_CALL_CONNECT] = run_connect,   [DRIVER_CALL_USAGE] = run_usage,
                [DRIVER_CALL_PROBE] = native__probe,
        },
        .cancel = run_cancel,
        .close = run_close,
};

/* A quarter of all descriptors; the rest is for connections. */
static size_t instances_max(void)
{
        int64_t limit = fd_limit_raise();

        return limit < 0 ? 256 : (size_t) limit / 4;
}

int driver_native_open(const struct driver_setup *setup, struct driver **ret, struct err *e)
{
        int network = setup->network ? plan_network_from_string(str_from(setup->network))
                                     : PLAN_NETWORK_PRIVATE;
        struct native *n;
        int r;

        if (network < 0)
                return err_set(e, ERR_INVALID, "no network is called '%s'", setup->network);
        if (setup->warden < 0)
                return err_set(e, ERR_UNSUPPORTED,
                               "there is no warden to make sandboxes: start hutchd as root");
        n = xnew(struct native);
        driver_init(&n->driver, &ops, setup->loop);
        n->log = setup->log;
        n->network = (enum plan_network) network;
        n->instances_max = instances_max();
        r = native_link_open(n, setup->warden);
        if (r < 0) {
                (void) fd_close(setup->warden);
                free(n);
                return err_errno(e, r, "watch the socket to the warden");
        }
        n->agents = agents_new(setup->loop);
        map_init(&n->instances);
        map_init(&n->creates);
        list_init(&n->instance_list);
        *ret = &n->driver;
        return 0;
}
