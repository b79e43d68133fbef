/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "driver/native/native_impl.h"
#include "os/fd.h"
#include "os/socket.h"

/* --- sockets of agents --- */

static struct native_instance *instance_get(const struct native *n, struct str id)
{
        struct map_node *node = map_get(&n->instances, id);

        return node ? container_of(node, struct native_instance, by_id) : NULL;
}

void native_instance_remove(struct native *n, struct str id)
{
        struct native_instance *x = instance_get(n, id);

        if (!x)
                return;
        map_remove(&n->instances, &x->by_id);
        list_remove(&x->node);
        (void) fd_close(x->socket);
        free(x);
}

/* A descriptor per sandbox is a shortcut: for sandboxes without one, the warden is asked. */
void native_instance_add(struct native *n, struct str id, int socket)
{
        struct native_instance *x;

        native_instance_remove(n, id);
        if (n->instances.n >= n->instances_max) {
                (void) fd_close(socket);
                return;
        }
        x = xnew(struct native_instance);
        x->socket = socket;
        (void) snprintf(x->id, sizeof(x->id), "%.*s", STR_ARG(id));
        map_add(&n->instances, &x->by_id, str_from(x->id));
        list_append(&n->instance_list, &x->node);
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

/* --- health and errors --- */

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
                                "its agent was killed because the sandbox ran out of memory");
        else if (s->reason == WARDEN_EXIT_LOST)
                (void) snprintf(text, NATIVE_TEXT_MAX,
                                "it ended unobserved, during a restart of the host or of the "
                                "warden");
        return (struct driver_health){ .status = (int) s->status,
                                       .reason = reasons[s->reason],
                                       .message = str_from(text) };
}

int native_fail(struct driver_req *req, const struct native_reply *r)
{
        return err_set(&req->err, err_code_from_errno(r->result), "%s", r->text);
}

/* --- calls that are one request --- */

void native__call_end(struct native_call *x, int result)
{
        struct driver_req *req = x->req;

        worker_request_end(&x->request._request);
        free(x);
        req->_impl = NULL;
        driver_finish(req, result);
}

/* If one warden destroys it and the next is asked again, it does not exist: that is success too. */
static void destroyed(struct native_request *q, const struct native_reply *r)
{
        struct native_call *x = NATIVE_CALL(q);

        native__call_end(x, r->result < 0 ? native_fail(x->req, r) : 0);
}

static void keep_socket(struct native_call *x, const struct native_reply *r)
{
        if (instance_is_alive(&r->msg->state))
                native_instance_add(x->n, str_from(x->id), TAKE_FD(r->fds[WARDEN_FD_SOCKET]));
        else
                native_instance_remove(x->n, str_from(x->id));
}

static void inspected(struct native_request *q, const struct native_reply *r)
{
        struct native_call *x = NATIVE_CALL(q);
        struct driver_inspect *i = DRIVER_AS(inspect, x->req);
        char text[NATIVE_TEXT_MAX];
        int result = 0;

        if (r->result == ERR_RETURN(ERR_NOT_FOUND)) {
                native_instance_remove(x->n, str_from(x->id));
                i->health = (struct driver_health){ .status = RUNTIME_GONE };
        } else if (r->result < 0) {
                result = native_fail(x->req, r);
        } else {
                keep_socket(x, r);
                i->health = native_health(&r->msg->state, text);
                i->health.message = driver_keep(x->req, i->health.message);
        }
        native__call_end(x, result);
}

static void measured(struct native_request *q, const struct native_reply *r)
{
        struct native_call *x = NATIVE_CALL(q);
        struct driver_usage *u = DRIVER_AS(usage, x->req);

        if (r->result < 0) {
                native__call_end(x, native_fail(x->req, r));
                return;
        }
        u->cpu_usec = r->msg->cpu_usec;
        u->memory_bytes = r->msg->memory_bytes;
        u->processes = r->msg->processes;
        native__call_end(x, 0);
}

static void inspected_after_pause(struct native_request *q, const struct native_reply *r)
{
        struct native_call *x = NATIVE_CALL(q);
        const bool pause = x->req->_call == DRIVER_CALL_PAUSE;

        if (r->result < 0)
                native__call_end(x, native_fail(x->req, r));
        else if (r->msg->state.status == (pause ? RUNTIME_PAUSED : RUNTIME_RUNNING))
                native__call_end(x, 0);
        else
                native__call_end(x, err_set(&x->req->err, ERR_CONFLICT, "the sandbox is %s",
                                            runtime_status_to_string((int) r->msg->state.status)));
}

/* A conflict may mean that the warden before this one did it for us. */
static void paused(struct native_request *q, const struct native_reply *r)
{
        struct native_call *x = NATIVE_CALL(q);

        if (r->result == ERR_RETURN(ERR_CONFLICT) && q->interrupted)
                native_send(x->n, q, WARDEN_MSG_INSPECT, inspected_after_pause);
        else
                native__call_end(x, r->result < 0 ? native_fail(x->req, r) : 0);
}

static void inspected_for_connect(struct native_request *q, const struct native_reply *r)
{
        struct native_call *x = NATIVE_CALL(q);
        int result;

        if (r->result == ERR_RETURN(ERR_NOT_FOUND)) {
                result = err_set(&x->req->err, ERR_NOT_FOUND, "there is no such sandbox");
        } else if (r->result < 0) {
                result = native_fail(x->req, r);
        } else if (!instance_is_alive(&r->msg->state)) {
                result = err_set(&x->req->err, ERR_UNAVAILABLE, "the sandbox has ended");
        } else {
                result = native_connect(r->fds[WARDEN_FD_SOCKET], &DRIVER_AS(connect, x->req)->fd);
                if (result < 0)
                        result = err_set(&x->req->err, ERR_UNAVAILABLE,
                                         "its agent does not answer: %s", err_text(result));
                else
                        keep_socket(x, r);
        }
        native__call_end(x, result);
}

static const struct {
        enum warden_msg call;
        native_replied_fn *replied;
} requests[DRIVER_CALL_MAX_] = {
        [DRIVER_CALL_DESTROY] = { WARDEN_MSG_DESTROY, destroyed },
        [DRIVER_CALL_PAUSE] = { WARDEN_MSG_PAUSE, paused },
        [DRIVER_CALL_RESUME] = { WARDEN_MSG_RESUME, paused },
        [DRIVER_CALL_INSPECT] = { WARDEN_MSG_INSPECT, inspected },
        [DRIVER_CALL_SCAN] = { WARDEN_MSG_SCAN, native__scan_page },
        [DRIVER_CALL_CONNECT] = { WARDEN_MSG_INSPECT, inspected_for_connect },
        [DRIVER_CALL_USAGE] = { WARDEN_MSG_USAGE, measured },
};

/* Sends the request of a call; what follows is in the `replied` of its row. */
static void run_request(struct driver *driver, struct driver_req *req)
{
        const struct sandbox *record = driver_req_record(req);
        struct native_call *x = xnew(struct native_call);

        x->n = native_of(driver);
        x->req = req;
        x->request.id = x->id;
        if (record)
                (void) snprintf(x->id, sizeof(x->id), "%.*s", STR_ARG(record->id));
        if (req->_call == DRIVER_CALL_DESTROY)
                native_instance_remove(x->n, str_from(x->id));
        req->_impl = x;
        native_send(x->n, &x->request, requests[req->_call].call, requests[req->_call].replied);
}

/* Without a descriptor of the agent's socket, the warden is asked for one, which is kept. */
static void run_connect(struct driver *driver, struct driver_req *req)
{
        struct driver_connect *c = DRIVER_AS(connect, req);
        struct native *n = native_of(driver);
        const struct native_instance *x = instance_get(n, c->record->id);
        int r;

        if (!x) {
                run_request(driver, req);
                return;
        }
        r = native_connect(x->socket, &c->fd);
        if (r < 0) {
                native_instance_remove(n, c->record->id);
                r = err_set(&req->err, ERR_UNAVAILABLE, "its agent does not answer: %s",
                            err_text(r));
        }
        driver_finish(req, r);
}

/* --- events --- */

void native__event(struct native *n, const struct warden_event *event)
{
        const struct str id = str_from(event->id);
        char text[NATIVE_TEXT_MAX];
        struct driver_health how;

        if (!sandbox_id_is_valid(id))
                return;
        if (event->kind == WARDEN_EVENT_OOM) {
                log_info(n->log, "a process of sandbox '%s' was killed: out of memory", event->id);
                return;
        }
        native_instance_remove(n, id);
        if (map_get(&n->creates, id))
                return; /* the reply to its create says so, or it is being removed */
        how = native_health(&event->state, text);
        driver_notify_died(&n->driver, id, &how);
}

/* --- life cycle --- */

/* A change of a sandbox that has begun is completed: the warden completes it in any case, and its result
 * matters. */
static void run_cancel(struct driver *driver, struct driver_req *req)
{
        (void) driver;
        switch (req->_call) {
        case DRIVER_CALL_CREATE:
                native__cancel_create(req);
                break;
        case DRIVER_CALL_DESTROY:
        case DRIVER_CALL_PAUSE:
        case DRIVER_CALL_RESUME:
                break;
        default:
                if (req->_impl)
                        native__call_end(req->_impl, err_set(&req->err, ERR_CANCELED, "canceled"));
                break;
        }
}

static void run_close(struct driver *driver)
{
        struct native *n = native_of(driver);
        struct list *first;

        worker_request_end(&n->rescan._request);
        net_task_cancel(&n->rescan_task);
        while ((first = list_first(&n->instance_list)))
                native_instance_remove(
                        n, str_from(container_of(first, struct native_instance, node)->id));
        worker_close(&n->warden);
}

static const struct driver_ops ops = {
        .name = "native",
        .caps = DRIVER_PAUSE | DRIVER_LIMITS | DRIVER_ISOLATION | DRIVER_USAGE
                | DRIVER_NETWORKS,
        .calls = {
                [DRIVER_CALL_CREATE] = native__create, [DRIVER_CALL_DESTROY] = run_request,
                [DRIVER_CALL_PAUSE] = run_request,     [DRIVER_CALL_RESUME] = run_request,
                [DRIVER_CALL_INSPECT] = run_request,   [DRIVER_CALL_SCAN] = run_request,
                [DRIVER_CALL_CONNECT] = run_connect,   [DRIVER_CALL_USAGE] = run_request,
                [DRIVER_CALL_PROBE] = native__probe,
        },
        .cancel = run_cancel,
        .close = run_close,
};

int driver_native_open(const struct driver_setup *setup, struct driver **ret, struct err *e)
{
        const int64_t files = fd_limit_raise();
        int network = setup->network ? plan_network_from_string(str_from(setup->network))
                                     : PLAN_NETWORK_PRIVATE;
        struct native *n;
        int r;

        if (network < 0)
                return err_set(e, ERR_INVALID, "no network is called '%s'", setup->network);
        if (setup->warden < 0)
                return err_set(e, ERR_UNSUPPORTED,
                               "the driver 'native' needs hutch-warden: start hutchd as root");
        n = xnew(struct native);
        driver_init(&n->driver, &ops, setup->loop);
        n->log = setup->log;
        n->network = (enum plan_network) network;
        n->instances_max = files < 0 ? 256 : (size_t) files / 4; /* the rest is for connections */
        map_init(&n->instances);
        map_init(&n->creates);
        list_init(&n->instance_list);
        net_task_init(&n->rescan_task, native__rescan);
        r = native_link_open(n, setup->warden);
        if (r < 0) {
                free(n);
                return err_errno(e, r, "watch the socket to the warden");
        }
        *ret = &n->driver;
        return 0;
}
