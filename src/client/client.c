/* SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/buf.h"
#include "client/loop.h"

#define DEFAULT_TIMEOUT_MS         30000
#define DEFAULT_CONNECT_TIMEOUT_MS 10000
#define DEFAULT_IDLE_TIMEOUT_MS    60000
#define DEFAULT_RESPONSE_MAX       (64 * MiB)
#define DEFAULT_EVENT_MAX          (16 * MiB)
#define LARGEST_MAX                ((uint64_t) SIZE_MAX / 4)
#define KEY_HEADER                 "OPEN-SANDBOX-API-KEY"
#define HEADER_MAX                 (64 * KiB)

const char *hutch_version(void)
{
        return HUTCH_VERSION;
}

int options_copy(void *to, size_t size, const void *from)
{
        const unsigned char *bytes = from;
        size_t given;

        memset(to, 0, size);
        memcpy(to, &size, sizeof(size));
        if (!from)
                return 0;
        memcpy(&given, from, sizeof(given));
        if (given < sizeof(given))
                return HUTCH_INVALID;
        for (size_t i = size; i < given; i++)
                if (bytes[i])
                        return HUTCH_UNSUPPORTED;
        memcpy(to, from, given < size ? given : size);
        return 0;
}

/* --- headers --- */

static bool is_clean(const char *text)
{
        for (const unsigned char *p = (const unsigned char *) text; *p; p++)
                if (*p < ' ' || *p == 0x7f)
                        return false;
        return true;
}

static int add_header(struct hutch_client *c, const char *name, const char *value)
{
        scoped(buf_done) struct buf b;
        struct curl_slist *more;

        buf_init(&b, HEADER_MAX);
        if (!name || !*name || !value || !is_clean(name) || !is_clean(value) || strchr(name, ':'))
                return HUTCH_INVALID;
        buf_mark_secret(&b);
        buf_addf(&b, *value ? "%s: %s" : "%s;", name, value);
        if (buf_failed(&b))
                return b.no_memory ? HUTCH_NO_MEMORY : HUTCH_INVALID;
        more = curl_slist_append(c->headers, buf_str(&b).p);
        if (!more)
                return HUTCH_NO_MEMORY;
        c->headers = more;
        return 0;
}

/* --- life cycle --- */

static int fill_client(struct hutch_client *c, const char *url, const char *api_key,
                       const struct hutch_client_options *options)
{
        struct hutch_client_options *o = &c->o, given;
        int r;

        c->url_text = strdup(url);
        if (api_key)
                c->secret_key = strdup(api_key);
        if (!c->url_text || (api_key && !c->secret_key))
                return HUTCH_NO_MEMORY;
        if (url_parse(str_from(c->url_text), &c->url) < 0)
                return HUTCH_INVALID;
        r = options_copy(&given, sizeof(given), options);
        if (r < 0)
                return r;
        *o = given;
        o->user_agent = o->ca_file = o->unix_socket = NULL; /* until they are copied */
        o->headers = NULL;
        o->n_headers = 0;
        o->timeout_ms = o->timeout_ms ? o->timeout_ms : DEFAULT_TIMEOUT_MS;
        o->connect_timeout_ms = o->connect_timeout_ms ? o->connect_timeout_ms
                                                      : DEFAULT_CONNECT_TIMEOUT_MS;
        o->idle_timeout_ms = o->idle_timeout_ms ? o->idle_timeout_ms : DEFAULT_IDLE_TIMEOUT_MS;
        o->response_max =
                MIN_OF(o->response_max ? o->response_max : DEFAULT_RESPONSE_MAX, LARGEST_MAX);
        o->event_max = MIN_OF(o->event_max ? o->event_max : DEFAULT_EVENT_MAX, LARGEST_MAX);
        if (c->secret_key && *c->secret_key)
                r = add_header(c, KEY_HEADER, c->secret_key);
        for (size_t i = 0; r == 0 && i < given.n_headers; i++)
                r = add_header(c, given.headers[i].key, given.headers[i].value);
        if (r < 0)
                return r;
        if (!given.user_agent)
                given.user_agent = "libhutch/" HUTCH_VERSION;
        if (!is_clean(given.user_agent))
                return HUTCH_INVALID;
        o->user_agent = strdup(given.user_agent);
        o->ca_file = given.ca_file ? strdup(given.ca_file) : NULL;
        o->unix_socket = given.unix_socket ? strdup(given.unix_socket) : NULL;
        if (!o->user_agent || !o->ca_file != !given.ca_file
            || !o->unix_socket != !given.unix_socket)
                return HUTCH_NO_MEMORY;
        return 0;
}

int hutch_client_new(const char *url, const char *api_key,
                     const struct hutch_client_options *options, struct hutch_client **ret)
{
        struct hutch_client *c;
        int r;

        if (!url || !ret)
                return HUTCH_INVALID;
        c = calloc(1, sizeof(*c));
        if (!c)
                return HUTCH_NO_MEMORY;
        (void) pthread_mutex_init(&c->lock, NULL);
        /* Reference-counted and thread-safe in every supported curl. It sets up curl and its TLS
         * library. */
        (void) curl_global_init(CURL_GLOBAL_DEFAULT);
        r = fill_client(c, url, api_key, options);
        if (r < 0) {
                hutch_client_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

static void wipe_text(char *text)
{
        if (text)
                explicit_bzero(text, strlen(text));
}

void hutch_client_free(struct hutch_client *client)
{
        if (!client)
                return;
        while (client->loops) {
                struct hutch_loop *l = client->loops;

                client->loops = l->next;
                hutch_loop_free(l);
        }
        for (struct curl_slist *n = client->headers; n; n = n->next)
                wipe_text(n->data);
        curl_slist_free_all(client->headers);
        wipe_text(client->secret_key);
        free(client->secret_key);
        free(client->url_text);
        free((void *) (uintptr_t) client->o.user_agent);
        free((void *) (uintptr_t) client->o.ca_file);
        free((void *) (uintptr_t) client->o.unix_socket);
        (void) pthread_mutex_destroy(&client->lock);
        free(client);
        curl_global_cleanup();
}

/* --- loops for blocking calls --- */

struct hutch_loop *client_take_loop(struct hutch_client *c)
{
        struct hutch_loop *l;

        (void) pthread_mutex_lock(&c->lock);
        l = c->loops;
        if (l) {
                c->loops = l->next;
                c->n_loops--;
        }
        (void) pthread_mutex_unlock(&c->lock);
        if (!l && hutch_loop_new(NULL, &l) < 0)
                return NULL;
        return l;
}

/* The most recently used loop is taken first: its connections are the freshest. */
void client_give_loop(struct hutch_client *c, struct hutch_loop *l)
{
        if (!l)
                return;
        (void) pthread_mutex_lock(&c->lock);
        if (c->n_loops < LOOPS_IDLE_MAX) {
                l->next = c->loops;
                c->loops = l;
                c->n_loops++;
                l = NULL;
        }
        (void) pthread_mutex_unlock(&c->lock);
        hutch_loop_free(l);
}
