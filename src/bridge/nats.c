/* SPDX-License-Identifier: Apache-2.0 */
#include <nats/nats.h>
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/base.h"
#include "bridge/broker_conn.h"

/*
 * NATS by cnats, whose reading and writing is left to our loop: otherwise a message would pass through two threads of the
 * library. Messages wait in the library's subscriptions until we look there after each read. The library could
 * reconnect by itself; that is disabled, because it would send blindly what was published meanwhile, and one way to
 * reconnect is enough for three transports.
 *
 * The protocol has no acknowledgements. But a server processes what a connection sends in order, so we publish a flush
 * marker to ourselves behind our messages: when it is back, the server has had them. A PING would do the same, but the
 * library blocks for its reply.
 *
 * A message without a subscriber vanishes on NATS, and after a restart of the server bridges may be back before callers
 * are. So a reply that matters is published as a request: the server then reports "no responders" at once, and so
 * before the flush marker. The report does not say which message it is about, so such a reply has a marker of its own.
 */

#define PENDING_MESSAGES (64 * 1024)
#define PENDING_BYTES    ((int) (64 * MiB))
#define PING_MS          10000 /* without a flush marker: then one is sent */
#define SILENCE_MS       20000 /* without a flush marker that comes back */
#define TICK_MS          5000
#define READS_MAX        1024
#define SUBJECT_MAX      (16 * KiB)
#define INBOX_MAX        64

struct nats {
        natsOptions *options;
        natsConnection *connection;
        natsSubscription *commands[PURISTA_COMMAND_MAX_];
        natsSubscription *markers; /* also reports of no responders */
        struct ids ids;
        char inbox[INBOX_MAX];
        int fd;
        uint64_t sent, marked,
                returned; /* last message: sent, with a marker behind it, confirmed */
        uint64_t paused;  /* number of the marker after which no command arrives */
        usec_t marked_at;
        bool no_responders; /* for the message of the next marker */

        /* Also set by a thread of the library, which exists while subscriptions are drained. */
        atomic_bool has_output; /* to write */
};

static struct nats *nats_of(struct broker_conn *w)
{
        return w->transport;
}

static int fail(struct err *e, natsStatus s, const char *doing)
{
        const char *more = nats_GetLastError(NULL);

        return err_set(e, ERR_UNAVAILABLE, "%s: %s%s%s", doing, natsStatus_GetText(s),
                       more ? ": " : "", more ? more : "");
}

/* --- called by the library --- */

/* Without a handler the library prints. What fails reports the same. */
static void on_error(natsConnection *nc, natsSubscription *sub, natsStatus s, void *closure)
{
        (void) nc;
        (void) sub;
        (void) s;
        (void) closure;
}

static natsStatus attach(void **ret, void *loop, natsConnection *nc, natsSock fd)
{
        (void) nc;
        nats_of(loop)->fd = fd;
        *ret = loop;
        return NATS_OK;
}

static natsStatus detach(void *loop)
{
        (void) loop;
        return NATS_OK;
}

static natsStatus want_read(void *loop, bool add)
{
        (void) loop;
        (void) add; /* always */
        return NATS_OK;
}

/* Whether this is one of our threads, which checks has_output by itself. */
static _Thread_local bool is_ours;

/* A thread of the library must wake the loop to write. */
static natsStatus want_write(void *loop, bool add)
{
        struct broker_conn *w = loop;

        atomic_store(&nats_of(w)->has_output, add);
        if (add && !is_ours)
                broker_conn_wake(w);
        return NATS_OK;
}

/* --- options --- */

static natsStatus set_tls_and_credentials(natsOptions *o, const struct settings *s)
{
        natsStatus r = NATS_OK;

        if (s->tls)
                r = natsOptions_SetSecure(o, true);
        if (r == NATS_OK && s->tls && s->ca)
                r = natsOptions_LoadCATrustedCertificates(o, s->ca);
        if (r == NATS_OK && s->tls && s->cert)
                r = natsOptions_LoadCertificatesChain(o, s->cert, s->cert_key);
        /* Otherwise the library does not verify the host name. */
        if (r == NATS_OK && s->tls)
                r = natsOptions_SetExpectedHostname(o, s->host);
        if (r == NATS_OK && s->user)
                r = natsOptions_SetUserInfo(o, s->user,
                                            s->password ? secret_expose(s->password).p : "");
        if (r == NATS_OK && s->token)
                r = natsOptions_SetToken(o, secret_expose(s->token).p);
        if (r == NATS_OK && s->credentials)
                r = natsOptions_SetUserCredentialsFromFiles(o, s->credentials, NULL);
        return r;
}

static natsStatus set_options(struct broker_conn *w, natsOptions *o)
{
        const struct settings *s = w->settings;
        natsStatus r = natsOptions_SetName(o, w->instance);
        char url[512];

        (void) snprintf(url, sizeof(url), "%s://%s:%d", s->tls ? "tls" : "nats", s->host, s->port);
        if (r == NATS_OK)
                r = natsOptions_SetURL(o, url);
        if (r == NATS_OK)
                r = natsOptions_SetAllowReconnect(o, false);
        if (r == NATS_OK)
                r = natsOptions_SetTimeout(o, w->timeout_ms);
        if (r == NATS_OK)
                r = natsOptions_SetEventLoop(o, w, attach, want_read, want_write, detach);
        /* Otherwise another thread sends, a millisecond later. */
        if (r == NATS_OK)
                r = natsOptions_SetSendAsap(o, true);
        if (r == NATS_OK)
                r = natsOptions_SetPingInterval(o, 0); /* we send flush markers */
        if (r == NATS_OK)
                r = natsOptions_SetMaxPendingMsgs(o, PENDING_MESSAGES);
        if (r == NATS_OK)
                r = natsOptions_SetErrorHandler(o, on_error, w);
        return r == NATS_OK ? set_tls_and_credentials(o, s) : r;
}

static int nats_open(struct broker_conn *w, struct err *e)
{
        struct nats *t = xnew(struct nats);
        natsStatus s;

        w->transport = t;
        ids_init(&t->ids);
        /* The library frees data of OpenSSL at its end that OpenSSL frees again when the process exits. */
        (void) OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
        s = nats_Open(-1);
        if (s == NATS_OK)
                s = natsOptions_Create(&t->options);
        if (s == NATS_OK)
                s = set_options(w, t->options);
        return s == NATS_OK ? 0 : fail(e, s, "prepare a connection to NATS");
}

static void nats_close(struct broker_conn *w)
{
        struct nats *t = nats_of(w);

        natsOptions_Destroy(t->options);
        /* Threads of the library may be in our callbacks. */
        (void) nats_CloseAndWait(0);
        free(t);
        w->transport = NULL;
}

/* --- connections --- */

/* To close a live connection, the library would wait for a reply of the server, in the thread that should read it. So it
 * must find that the connection is dead. */
static void nats_disconnect(struct broker_conn *w)
{
        struct nats *t = nats_of(w);

        if (t->connection && !natsConnection_IsClosed(t->connection)) {
                if (atomic_load(&t->has_output))
                        natsConnection_ProcessWriteEvent(t->connection);
                (void) shutdown(t->fd, SHUT_RDWR);
                /* Data in the socket is read first, a portion each time. */
                for (unsigned i = 0; i < READS_MAX && !natsConnection_IsClosed(t->connection); i++)
                        natsConnection_ProcessReadEvent(t->connection);
        }
        natsConnection_Destroy(TAKE_PTR(t->connection));
        for (size_t i = 0; i < ARRAY_SIZE(t->commands); i++)
                natsSubscription_Destroy(TAKE_PTR(t->commands[i]));
        natsSubscription_Destroy(TAKE_PTR(t->markers));
}

static int nats_connect(struct broker_conn *w, struct err *e)
{
        struct nats *t = nats_of(w);
        char id[ID_HEX_LEN + 1];
        natsStatus s;

        is_ours = true;
        t->sent = t->marked = t->returned = t->paused = 0;
        t->no_responders = false;
        atomic_store(&t->has_output, false);
        s = natsConnection_Connect(&t->connection, t->options);
        if (s != NATS_OK)
                return fail(e, s, "connect to NATS");
        ids_hex(&t->ids, id); /* random: others know our instance id and could send markers to it */
        (void) snprintf(t->inbox, sizeof(t->inbox), "_INBOX.%s", id);
        s = natsConnection_SubscribeSync(&t->markers, t->connection, t->inbox);
        if (s != NATS_OK) {
                nats_disconnect(w);
                return fail(e, s, "subscribe to NATS");
        }
        w->body_max = (size_t) MAX_OF(natsConnection_GetMaxPayload(t->connection), 0);
        return 0;
}

/* --- reading --- */

static bool has_message(natsSubscription *sub)
{
        uint64_t n = 0;

        return sub && natsSubscription_QueuedMsgs(sub, &n) == NATS_OK && n > 0;
}

/* A copy of the next command that has arrived, or NULL. */
static struct incoming *next_command(natsSubscription *sub)
{
        struct incoming *m;
        natsMsg *msg = NULL;
        const char *reply;

        /* If one is there, this does not wait. */
        if (!has_message(sub) || natsSubscription_NextMsg(&msg, sub, 1) != NATS_OK)
                return NULL;
        m = incoming_new();
        reply = natsMsg_GetReply(msg);
        if (natsMsg_GetDataLength(msg) > 0)
                buf_add(&m->body, natsMsg_GetData(msg), (size_t) natsMsg_GetDataLength(msg));
        if (reply)
                buf_add_str(&m->reply_to, str_from(reply));
        natsMsg_Destroy(msg);
        return m;
}

static void take_flush_marker(struct broker_conn *w)
{
        struct nats *t = nats_of(w);
        natsMsg *msg = NULL;
        natsStatus s = natsSubscription_NextMsg(&msg, t->markers, 1);
        uint64_t number = UINT64_MAX;

        /* The library turns the report of the server into an error. */
        if (s == NATS_NO_RESPONDERS)
                t->no_responders = true;
        else if (s == NATS_OK && natsMsg_GetDataLength(msg) == sizeof(number))
                memcpy(&number, natsMsg_GetData(msg), sizeof(number));
        natsMsg_Destroy(msg);
        if (number > t->marked)
                return; /* not ours */
        /* The server has the messages up to this number. */
        t->returned = number;
        list_for_each (n, &w->sent) {
                struct outgoing *m = container_of(n, struct outgoing, node);

                if (m->publish_id > number)
                        continue;
                broker_conn_sent(w, m,
                                 m->probe && t->no_responders ? OUTCOME_NO_RECEIVER : OUTCOME_SENT);
        }
        t->no_responders = false;
}

static int check(struct nats *t, struct err *e)
{
        const char *why = NULL;

        if (!natsConnection_IsClosed(t->connection))
                return 0;
        (void) natsConnection_GetLastError(t->connection, &why);
        return err_set(e, ERR_UNAVAILABLE, "NATS: %s", why && *why ? why : "closed");
}

/* --- flush markers --- */

/* Only we read it, so the byte order does not matter. */
static int send_flush_marker(struct nats *t, struct err *e)
{
        natsStatus s = natsConnection_Publish(t->connection, t->inbox, &t->sent, sizeof(t->sent));

        if (s != NATS_OK)
                return fail(e, s, "publish");
        t->marked = t->sent;
        t->marked_at = clock_mono(&clock_system);
        return 0;
}

static int nats_fd(struct broker_conn *w)
{
        return nats_of(w)->fd;
}

static bool nats_wants_write(struct broker_conn *w)
{
        return atomic_load(&nats_of(w)->has_output);
}

static int nats_run(struct broker_conn *w, short revents, struct err *e)
{
        struct nats *t = nats_of(w);
        struct incoming *m;
        usec_t quiet;
        int r;

        is_ours = true;
        if (revents & (POLLIN | POLLERR))
                natsConnection_ProcessReadEvent(t->connection);
        if (atomic_load(&t->has_output))
                natsConnection_ProcessWriteEvent(t->connection);
        while (has_message(t->markers))
                take_flush_marker(w);
        for (size_t i = 0; i < ARRAY_SIZE(t->commands); i++)
                while ((m = next_command(t->commands[i])))
                        broker_conn_deliver(w, m);
        r = check(t, e);
        if (r < 0)
                return r;
        /* The library could send pings from a thread, which would close the connection under us. */
        quiet = clock_mono(&clock_system) - t->marked_at;
        if (t->returned < t->marked)
                return quiet < SILENCE_MS * USEC_PER_MSEC
                               ? 0
                               : err_set(e, ERR_TIMEOUT, "NATS: the server does not respond");
        if (quiet < PING_MS * USEC_PER_MSEC)
                return 0;
        t->sent++;
        return send_flush_marker(t, e);
}

/* --- sending --- */

/* What the socket does not take is written when the loop finds it writable. */
static int nats_flush(struct broker_conn *w, struct err *e)
{
        struct nats *t = nats_of(w);
        int r = t->marked < t->sent ? send_flush_marker(t, e) : 0;

        if (r == 0 && atomic_load(&t->has_output))
                natsConnection_ProcessWriteEvent(t->connection);
        return r == 0 ? check(t, e) : r;
}

static int nats_send(struct broker_conn *w, struct outgoing *m, struct err *e)
{
        struct nats *t = nats_of(w);
        scoped(buf_done) struct buf subject;
        struct str body = buf_str(&m->body);
        natsStatus s = NATS_INVALID_SUBJECT;
        natsMsg *msg = NULL;

        buf_init(&subject, SUBJECT_MAX);
        if (m->is_reply)
                buf_add_str(&subject, m->reply_to);
        else
                names_add_address(&subject, &name_style_nats, w->settings->prefix, &m->head);
        if (!buf_failed(&subject))
                s = natsMsg_Create(&msg, buf_str(&subject).p, m->probe ? t->inbox : NULL, body.p,
                                   (int) body.n);
        for (size_t i = 0; i < m->n_headers && s == NATS_OK; i++)
                s = natsMsgHeader_Set(msg, m->headers[i].name, m->headers[i].value.p);
        if (s != NATS_OK) {
                natsMsg_Destroy(msg);
                broker_conn_sent(w, m, OUTCOME_REFUSED);
                return 0;
        }
        s = natsConnection_PublishMsg(t->connection, msg);
        natsMsg_Destroy(msg);
        if (s == NATS_MAX_PAYLOAD || s == NATS_NO_SERVER_SUPPORT) { /* for headers */
                broker_conn_sent(w, m, s == NATS_MAX_PAYLOAD ? OUTCOME_TOO_LARGE : OUTCOME_REFUSED);
                return 0;
        }
        if (s != NATS_OK)
                return fail(e, s, "publish");
        m->publish_id = ++t->sent;
        return m->probe ? send_flush_marker(t, e) : 0;
}

/* --- commands --- */

/* A marker that comes back shows that the server has the subscriptions: callers may send commands as soon as they see the
 * announcement. It also shows that the user has the permission that markers need. */
static int wait_for_flush_marker(struct broker_conn *w, struct err *e)
{
        struct nats *t = nats_of(w);
        usec_t until = clock_mono(&clock_system) + (usec_t) w->timeout_ms * USEC_PER_MSEC;
        const char *why = NULL;
        int r;

        t->sent++;
        r = nats_flush(w, e);
        while (r == 0 && t->returned < t->sent) {
                struct pollfd fd = { .fd = t->fd, .events = POLLIN };
                usec_t now = clock_mono(&clock_system);

                if (now >= until)
                        return err_set(e, ERR_TIMEOUT, "subscribe to NATS: no reply");
                if (nats_wants_write(w))
                        fd.events |= POLLOUT;
                (void) poll(&fd, 1, (int) ((until - now) / USEC_PER_MSEC) + 1);
                r = nats_run(w, fd.revents, e);
                if (r == 0
                    && natsConnection_GetLastError(t->connection, &why) == NATS_NOT_PERMITTED)
                        r = err_set(e, ERR_UNAVAILABLE,
                                    "NATS: %s; this user must be allowed to subscribe to the "
                                    "commands, and to publish and subscribe to _INBOX.>",
                                    why ? why : "not permitted");
        }
        return r;
}

static int nats_serve(struct broker_conn *w, struct err *e)
{
        struct nats *t = nats_of(w);
        natsStatus s = NATS_OK;

        for (size_t i = 0; i < PURISTA_COMMAND_MAX_ && s == NATS_OK; i++) {
                struct address to = message_command_address(&purista_commands[i]);
                scoped(buf_done) struct buf subject, group;

                buf_init(&subject, SUBJECT_MAX);
                buf_init(&group, SUBJECT_MAX);
                names_add_commands(&subject, &name_style_nats, w->settings->prefix, &to);
                names_add_queue_group(&group, w->settings->prefix, &to);
                s = buf_failed(&subject) || buf_failed(&group)
                            ? NATS_NO_MEMORY
                            : natsConnection_QueueSubscribeSync(&t->commands[i], t->connection,
                                                                buf_str(&subject).p,
                                                                buf_str(&group).p);
                if (s == NATS_OK)
                        s = natsSubscription_SetPendingLimits(t->commands[i], PENDING_MESSAGES,
                                                              PENDING_BYTES);
        }
        return s == NATS_OK ? wait_for_flush_marker(w, e) : fail(e, s, "subscribe to NATS");
}

/* The library delivers what the server sends until the server has processed the unsubscribe. */
static int nats_pause(struct broker_conn *w, struct err *e)
{
        struct nats *t = nats_of(w);

        for (size_t i = 0; i < ARRAY_SIZE(t->commands); i++)
                if (t->commands[i])
                        (void) natsSubscription_Drain(t->commands[i]);
        t->sent++; /* for a marker behind it */
        t->paused = t->sent;
        return nats_flush(w, e);
}

static bool nats_is_quiet(struct broker_conn *w)
{
        return nats_of(w)->returned >= nats_of(w)->paused;
}

static const char *const schemes[] = { "nats", "tls" };

const struct transport_ops transport_nats = {
        .name = "nats",
        .schemes = schemes,
        .port = 4222,
        .tls_port = 4222,
        .open = nats_open,
        .close = nats_close,
        .connect = nats_connect,
        .serve = nats_serve,
        .disconnect = nats_disconnect,
        .fd = nats_fd,
        .wants_write = nats_wants_write,
        .run = nats_run,
        .tick_ms = TICK_MS,
        .send = nats_send,
        .flush = nats_flush,
        .pause = nats_pause,
        .is_quiet = nats_is_quiet,
};
