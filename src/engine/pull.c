/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/base64.h"
#include "base/secret.h"
#include "base/sha256.h"
#include "engine/worker.h"
#include "http/url.h"
#include "model/text.h"

#define LINE_MAX_BYTES (64 * KiB)
#define AUTH_MAX       (16 * KiB)

struct pull {
        struct list node;
        struct engine_worker *worker;
        struct api_call api;
        struct json_stream objects;
        struct list waiting; /* struct pull_wait */
        char *image;
        uint8_t who[SHA256_SIZE]; /* digest of the credentials */
        struct buf auth;
        bool failed; /* the engine reported an error after the head */
        struct err err;
};

/* --- credentials --- */

static void digest(const struct image_auth *auth, uint8_t ret[static SHA256_SIZE])
{
        struct sha256 s;

        sha256_init(&s);
        if (auth) {
                sha256_add(&s, auth->username.p, auth->username.n);
                sha256_add(&s, "", 1);
                sha256_add(&s, auth->secret_password.p, auth->secret_password.n);
        }
        sha256_finish(&s, ret);
}

/* The registry in the name of an image: "host:5000/a/b:tag". */
static struct str registry_of(struct str image)
{
        ssize_t slash = str_find(image, '/');
        struct str first = slash < 0 ? STR_NULL : str_of(image.p, (size_t) slash);

        if (first.p
            && (str_find(first, '.') >= 0 || str_find(first, ':') >= 0
                || str_eq(first, STR("localhost"))))
                return first;
        return STR("https://index.docker.io/v1/");
}

/* base64url of {"username": …}. */
static void write_auth(struct pull *p, const struct image_auth *auth)
{
        scoped(buf_done) struct buf json;
        size_t n;
        char *to;

        buf_init(&json, AUTH_MAX);
        buf_mark_secret(&json);
        buf_add_str(&json, STR("{\"username\":"));
        buf_add_quoted(&json, auth->username);
        buf_add_str(&json, STR(",\"password\":"));
        buf_add_quoted(&json, auth->secret_password);
        buf_add_str(&json, STR(",\"serveraddress\":"));
        buf_add_quoted(&json, registry_of(str_from(p->image)));
        buf_add_char(&json, '}');
        to = buf_reserve(&p->auth, BASE64_ENCODED(json.n));
        if (!to || buf_failed(&json))
                return;
        n = base64_encode(buf_str(&json).p, json.n, to);
        for (size_t i = 0; i < n; i++)
                to[i] = (char) (to[i] == '+' ? '-' : to[i] == '/' ? '_' : to[i]);
        buf_advance(&p->auth, n);
}

/* --- the end --- */

/* Registries report a missing image, and one that may not be seen, in many ways. */
static int refusal(struct pull *p)
{
        struct err cause;

        if (p->failed)
                return err_set(&p->err, ERR_NOT_FOUND, "image %s cannot be pulled: %s",
                               QUOTED(str_from(p->image)), p->err.message);
        (void) api_call_error(&p->api, &cause, "pull");
        if (p->api.result == 0 && p->api.status >= 400)
                cause.code = ERR_NOT_FOUND;
        return err_set(&p->err, cause.code,
                       "image %s is not in the engine's store and cannot be pulled: %s",
                       QUOTED(str_from(p->image)), cause.message);
}

static void pulled(struct api_call *k)
{
        struct pull *p = container_of(k, struct pull, api);
        struct engine_worker *w = p->worker;
        int code = api_call_ok(k) && !p->failed ? 0 : refusal(p);

        list_remove(&p->node); /* a later create starts a new pull */
        while (!list_empty(&p->waiting)) {
                struct pull_wait *x = container_of(list_first(&p->waiting), struct pull_wait, node);

                list_remove(&x->node);
                x->_pull = NULL;
                x->err = p->err;
                x->done(x, code);
        }
        api_call_done(&p->api);
        json_stream_done(&p->objects);
        buf_done(&p->auth);
        free(p->image);
        free(p);
        engine_worker__part_closed(w);
}

static int progress(void *data, struct str object)
{
        struct pull *p = data;
        struct engine_progress line;
        struct arena a;
        struct err e;
        int r;

        arena_init(&a, 4 * LINE_MAX_BYTES);
        r = engine_progress_decode(object, &a, &line, &e);
        if (r == 0 && line.error.n > 0 && !p->failed) {
                p->failed = true;
                (void) err_set(&p->err, ERR_NOT_FOUND, "%s", QUOTED(line.error));
        } else if (r == 0 && line.status.n > 0) {
                log_fields(p->worker->log, LOG_DEBUG, "pulling",
                           LOG_F_STR("image", str_from(p->image)),
                           LOG_F_STR("status", line.status));
        }
        arena_done(&a);
        return r < 0 ? -EBADMSG : 0;
}

/* --- the start --- */

/* An image without a tag would mean all of its tags. */
static bool has_tag(struct str image)
{
        ssize_t at;

        if (str_find(image, '@') >= 0)
                return true;
        while ((at = str_find(image, '/')) >= 0)
                image = str_skip(image, (size_t) at + 1);
        return str_find(image, ':') >= 0;
}

static struct pull *pull_new(struct engine_worker *w, struct str image,
                             const struct image_auth *auth)
{
        struct pull *p = xnew(struct pull);

        p->worker = w;
        p->image = xstrndup_str(image);
        digest(auth, p->who);
        api_call_init(&p->api, w);
        json_stream_init(&p->objects, LINE_MAX_BYTES, progress, p);
        list_init(&p->waiting);
        buf_init(&p->auth, 2 * AUTH_MAX);
        buf_mark_secret(&p->auth);
        list_append(&w->pulls, &p->node);
        w->open++;
        api_call_reset(&p->api);
        api_call_target(&p->api, "/images/create?fromImage=");
        url_encode(&p->api.target, image);
        if (!has_tag(image))
                api_call_target(&p->api, "&tag=latest");
        if (auth) {
                write_auth(p, auth);
                p->api.auth = buf_str(&p->auth);
        }
        p->api.objects = &p->objects;
        log_fields(w->log, LOG_INFO, "pulling image", LOG_F_STR("image", image));
        api_call_start(&p->api, "POST", /* stream= */ true, pulled);
        return p;
}

void pull_start(struct engine_worker *w, struct pull_wait *x, struct str image,
                const struct image_auth *auth)
{
        uint8_t who[SHA256_SIZE];
        struct pull *p = NULL;

        digest(auth, who);
        list_for_each (n, &w->pulls) {
                struct pull *other = container_of(n, struct pull, node);

                if (str_eq(str_from(other->image), image)
                    && memcmp(other->who, who, sizeof(who)) == 0)
                        p = other;
        }
        if (!p)
                p = pull_new(w, image, auth);
        x->_pull = p;
        list_append(&p->waiting, &x->node);
}

void pull_detach(struct pull_wait *x)
{
        struct pull *p = TAKE_PTR(x->_pull);

        list_remove(&x->node);
        if (!p || !list_empty(&p->waiting))
                return;
        list_remove(&p->node);
        api_call_cancel(&p->api);
}
