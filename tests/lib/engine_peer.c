/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/engine_peer.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "os/fd.h"
#include "tests/lib/check.h"

#define ANSWER_MAX (16 * MiB)

const char *engine_peer_socket(void)
{
        return getenv("HUTCH_TEST_ENGINE_SOCKET");
}

static int dial(void)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        check_true(fd >= 0);
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", engine_peer_socket());
        check_i64_eq(connect(fd, (struct sockaddr *) &address, sizeof(address)), 0);
        return fd;
}

static void send_all(int fd, struct str text)
{
        while (text.n > 0) {
                ssize_t n = send(fd, text.p, text.n, MSG_NOSIGNAL);

                check_true(n > 0);
                text = str_of(text.p + n, text.n - (size_t) n);
        }
}

static void receive_all(int fd, struct buf *response)
{
        char piece[16384];
        ssize_t n;

        while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
                buf_add(response, piece, (size_t) n);
        check_i64_eq(n, 0);
}

/* In HTTP/1.0 a response is not chunked and ends with the connection. */
static void send_request(const char *method, const char *path, const json_t *body,
                         struct buf *response)
{
        char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
        scoped(fd_closep) int fd = dial();
        struct buf request;

        buf_init(&request, ANSWER_MAX);
        buf_addf(&request, "%s /v1.41%s HTTP/1.0\r\nHost: engine\r\n", method, path);
        if (text)
                buf_addf(&request, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                         strlen(text));
        buf_addf(&request, "\r\n%s", text ? text : "");
        send_all(fd, buf_str(&request));
        receive_all(fd, response);
        if (!str_starts_with(buf_str(response), STR("HTTP/1.0 2")))
                fail_msg("%s %s: %s", method, path, buf_str(response).p);
        buf_done(&request);
        free(text);
}

json_t *engine_peer_get(const char *path_fmt, ...)
{
        char path[1024];
        const char *body;
        struct buf response;
        json_t *ret;
        va_list ap;

        va_start(ap, path_fmt);
        (void) vsnprintf(path, sizeof(path), path_fmt, ap);
        va_end(ap);
        buf_init(&response, ANSWER_MAX);
        send_request("GET", path, NULL, &response);
        body = strstr(buf_str(&response).p, "\r\n\r\n");
        check_true(body != NULL);
        ret = json_loads(body + 4, 0, NULL);
        check_true(ret != NULL);
        buf_done(&response);
        return ret;
}

void engine_peer_do(const char *method, const json_t *body, const char *path_fmt, ...)
{
        char path[1024];
        struct buf response;
        va_list ap;

        va_start(ap, path_fmt);
        (void) vsnprintf(path, sizeof(path), path_fmt, ap);
        va_end(ap);
        buf_init(&response, ANSWER_MAX);
        send_request(method, path, body, &response);
        buf_done(&response);
}

/* --- containers --- */

/* "/hutch-…-ID": engines put a slash before names. */
static const char *name_of(const json_t *container)
{
        const char *name =
                json_string_value(json_array_get(json_object_get(container, "Names"), 0));

        check_true(name && name[0] == '/');
        return name + 1;
}

void engine_peer_find(struct str id, char ret[static ENGINE_PEER_NAME])
{
        json_t *all = engine_peer_get("/containers/json?all=1");
        unsigned found = 0;

        for (size_t i = 0; i < json_array_size(all); i++) {
                const json_t *one = json_array_get(all, i);
                const json_t *label =
                        json_object_get(json_object_get(one, "Labels"), "hutch.sandbox");

                if (!label || !str_eq(id, str_from(json_string_value(label))))
                        continue;
                found++;
                (void) snprintf(ret, ENGINE_PEER_NAME, "%s", name_of(one));
        }
        json_decref(all);
        check_i64_eq(found, 1);
}

void engine_peer_remove_all(void)
{
        json_t *all = engine_peer_get("/containers/json?all=1");

        for (size_t i = 0; i < json_array_size(all); i++)
                engine_peer_do("DELETE", NULL, "/containers/%s?force=1",
                               name_of(json_array_get(all, i)));
        json_decref(all);
}
