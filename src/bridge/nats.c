/* SPDX-License-Identifier: Apache-2.0 */
#include <nats/nats.h>
#include <openssl/crypto.h>
#include <stdatomic.h>

#include "base/base.h"
#include "bridge/wire.h"

/*
 * NATS, by cnats. The library reads in a thread of its own and calls us from another, so what comes is
 * copied and handed to the loop there; everything else is done by the wire.
 *
 * It could reconnect by itself, and is told not to: what was published meanwhile would be sent blindly,
 * and one way of coming back is enough for three transports.
 *
 * A message to which nobody listens vanishes on NATS, and after a restart of the server bridges may be
 * back before callers are. A reply that matters therefore asks for an answer itself: the server then tells
 * at once if nobody is there ("no responders"), before it answers the PING of a flush. So after a flush one
 * knows.
 */

#define PENDING_MESSAGES (64 * 1024)
#define PENDING_BYTES    ((int) (64 * MiB))
#define PING_MS          20000
#define SUBJECT_MAX      (16 * KiB)
#define INBOX_MAX        64

struct nats {
        natsOptions *options;
        natsConnection *connection;
        natsSubscription *commands[COMMANDS_N];
        natsSubscription *probes;
        char inbox[INBOX_MAX];

        /* Also of the library's threads. */
        atomic_bool broken;
        atomic_uint_fast64_t epoch;
};

static struct nats *nats_of(struct wire *w)
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

static void copy(struct buf *to, const char *p, int n)
{
        if (p && n > 0)
                buf_add(to, p, (size_t) n);
}

static void on_message(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *closure)
{
        struct wire *w = closure;
        struct incoming *m = incoming_new();
        const char *reply = natsMsg_GetReply(msg);

        (void) nc;
        (void) sub;
        copy(&m->body, natsMsg_GetData(msg), natsMsg_GetDataLength(msg));
        copy(&m->reply_to, reply, reply ? (int) strlen(reply) : 0);
        m->epoch = atomic_load(&nats_of(w)->epoch);
        wire_deliver(w, m);
        natsMsg_Destroy(msg); /* wakes a thread of the library's; nobody has to wait for that */
}

static void on_closed(natsConnection *nc, void *closure)
{
        struct wire *w = closure;

        (void) nc;
        atomic_store(&nats_of(w)->broken, true);
        wire_wake(w);
}

/* Without one of ours the library prints. What it tells is told again by what fails. */
static void on_error(natsConnection *nc, natsSubscription *sub, natsStatus s, void *closure)
{
        struct wire *w = closure;

        (void) nc;
        (void) sub;
        if (s == NATS_SLOW_CONSUMER)
                atomic_fetch_add(&w->dropped, 1);
}

/* --- options --- */

static natsStatus set_tls(natsOptions *o, const struct settings *s)
{
        natsStatus r = NATS_OK;

        if (s->tls)
                r = natsOptions_SetSecure(o, true);
        if (r == NATS_OK && s->tls && s->ca)
                r = natsOptions_LoadCATrustedCertificates(o, s->ca);
        if (r == NATS_OK && s->tls && s->cert)
                r = natsOptions_LoadCertificatesChain(o, s->cert, s->cert_key);
        /* The library verifies against the name it connects to only if it is told to. */
        if (r == NATS_OK && s->tls)
                r = natsOptions_SetExpectedHostname(o, s->host);
        return r;
}

static natsStatus set_credentials(natsOptions *o, const struct settings *s)
{
        natsStatus r = NATS_OK;

        if (s->user)
                r = natsOptions_SetUserInfo(o, s->user,
                                            s->password ? secret_expose(s->password).p : "");
        if (r == NATS_OK && s->token)
                r = natsOptions_SetToken(o, secret_expose(s->token).p);
        if (r == NATS_OK && s->credentials)
                r = natsOptions_SetUserCredentialsFromFiles(o, s->credentials, NULL);
        return r;
}

static natsStatus set_options(struct wire *w, natsOptions *o)
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
                r = natsOptions_SetWriteDeadline(o, w->timeout_ms);
        /* Otherwise another thread sends, a millisecond later, and whoever flushes has to fight it. */
        if (r == NATS_OK)
                r = natsOptions_SetSendAsap(o, true);
        if (r == NATS_OK)
                r = natsOptions_SetPingInterval(o, PING_MS);
        if (r == NATS_OK)
                r = natsOptions_UseGlobalMessageDelivery(o, true);
        if (r == NATS_OK)
                r = natsOptions_SetMaxPendingMsgs(o, PENDING_MESSAGES);
        if (r == NATS_OK)
                r = natsOptions_SetClosedCB(o, on_closed, w);
        if (r == NATS_OK)
                r = natsOptions_SetErrorHandler(o, on_error, w);
        if (r == NATS_OK)
                r = set_tls(o, s);
        return r == NATS_OK ? set_credentials(o, s) : r;
}

static int nats_open(struct wire *w, struct err *e)
{
        struct nats *t = xnew(struct nats);
        natsStatus s;

        w->transport = t;
        /* Its end frees things of OpenSSL's that OpenSSL frees again when the process exits. */
        (void) OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
        s = nats_Open(-1);
        if (s == NATS_OK)
                s = natsOptions_Create(&t->options);
        if (s == NATS_OK)
                s = set_options(w, t->options);
        return s == NATS_OK ? 0 : fail(e, s, "prepare a connection to NATS");
}

static void nats_close(struct wire *w)
{
        struct nats *t = nats_of(w);

        natsOptions_Destroy(t->options);
        /* Its threads may be in callbacks of ours. */
        (void) nats_CloseAndWait(0);
        free(t);
        w->transport = NULL;
}

/* --- connections --- */

static void nats_disconnect(struct wire *w)
{
        struct nats *t = nats_of(w);

        for (size_t i = 0; i < ARRAY_SIZE(t->commands); i++)
                natsSubscription_Destroy(TAKE_PTR(t->commands[i]));
        natsSubscription_Destroy(TAKE_PTR(t->probes));
        natsConnection_Destroy(TAKE_PTR(t->connection));
}

static int nats_connect(struct wire *w, struct err *e)
{
        struct nats *t = nats_of(w);
        natsStatus s;

        atomic_store(&t->broken, false);
        atomic_store(&t->epoch, w->epoch + 1);
        s = natsConnection_Connect(&t->connection, t->options);
        if (s != NATS_OK)
                return fail(e, s, "connect to NATS");
        (void) snprintf(t->inbox, sizeof(t->inbox), "_INBOX.%.32s", w->instance);
        s = natsConnection_SubscribeSync(&t->probes, t->connection, t->inbox);
        if (s != NATS_OK) {
                nats_disconnect(w);
                return fail(e, s, "subscribe to NATS");
        }
        w->body_max = (size_t) MAX_OF(natsConnection_GetMaxPayload(t->connection), 0);
        return 0;
}

static natsStatus subscribe(struct wire *w, size_t i)
{
        struct nats *t = nats_of(w);
        struct address to = command_address(&command_kinds[i]);
        scoped(buf_done) struct buf subject, group;
        natsStatus s = NATS_NO_MEMORY;

        buf_init(&subject, SUBJECT_MAX);
        buf_init(&group, SUBJECT_MAX);
        names_add_commands(&subject, &name_style_nats, w->settings->prefix, &to);
        names_add_queue_group(&group, w->settings->prefix, &to);
        if (!buf_failed(&subject) && !buf_failed(&group))
                s = natsConnection_QueueSubscribe(&t->commands[i], t->connection,
                                                  buf_str(&subject).p, buf_str(&group).p,
                                                  on_message, w);
        if (s == NATS_OK)
                s = natsSubscription_SetPendingLimits(t->commands[i], PENDING_MESSAGES,
                                                      PENDING_BYTES);
        return s;
}

/* The flush shows that the server has them: who is told that we are there may ask at once. */
static int nats_serve(struct wire *w, struct err *e)
{
        struct nats *t = nats_of(w);
        natsStatus s = NATS_OK;

        for (size_t i = 0; i < COMMANDS_N && s == NATS_OK; i++)
                s = subscribe(w, i);
        if (s == NATS_OK)
                s = natsConnection_FlushTimeout(t->connection, w->timeout_ms);
        return s == NATS_OK ? 0 : fail(e, s, "subscribe to NATS");
}

/* The library's threads do the reading. */
/* NOLINTNEXTLINE(readability-non-const-parameter): transport.h has it so */
static size_t nats_poll(struct wire *w, struct pollfd *ret, int *timeout_ms)
{
        (void) w;
        (void) ret;
        (void) timeout_ms;
        return 0;
}

static int nats_run(struct wire *w, short revents, struct err *e)
{
        struct nats *t = nats_of(w);
        const char *why = NULL;

        (void) revents;
        if (!atomic_load(&t->broken))
                return 0;
        (void) natsConnection_GetLastError(t->connection, &why);
        return err_set(e, ERR_UNAVAILABLE, "NATS: %s", why && *why ? why : "closed");
}

static int nats_pause(struct wire *w, struct err *e)
{
        struct nats *t = nats_of(w);

        (void) e;
        for (size_t i = 0; i < ARRAY_SIZE(t->commands); i++)
                if (t->commands[i])
                        (void) natsSubscription_Drain(t->commands[i]);
        return 0;
}

/* --- sending --- */

static natsStatus make(struct wire *w, const struct outgoing *m, natsMsg **ret)
{
        scoped(buf_done) struct buf subject;
        struct str body = buf_str(&m->body);
        natsMsg *msg = NULL;
        natsStatus s;

        buf_init(&subject, SUBJECT_MAX);
        if (m->is_reply)
                buf_add_str(&subject, m->reply_to);
        else
                names_add_address(&subject, &name_style_nats, w->settings->prefix, &m->head);
        if (buf_failed(&subject))
                return NATS_INVALID_SUBJECT;
        s = natsMsg_Create(&msg, buf_str(&subject).p, m->probe ? nats_of(w)->inbox : NULL, body.p,
                           (int) body.n);
        for (size_t i = 0; i < m->n_headers && s == NATS_OK; i++)
                s = natsMsgHeader_Set(msg, m->headers[i].name, m->headers[i].value.p);
        if (s == NATS_OK)
                *ret = msg;
        else
                natsMsg_Destroy(msg);
        return s;
}

/* Whether the server told that nobody listens to what was flushed last. The library keeps such a message
 * for itself, so one does not learn which one it was about: probes are sent one at a time. */
static bool nobody_listened(struct nats *t)
{
        natsMsg *msg = NULL;
        uint64_t n = 0;
        bool nobody = false;

        while (natsSubscription_QueuedMsgs(t->probes, &n) == NATS_OK && n > 0) {
                /* It is there: a millisecond is none. */
                nobody |= natsSubscription_NextMsg(&msg, t->probes, 1) == NATS_NO_RESPONDERS;
                natsMsg_Destroy(TAKE_PTR(msg));
        }
        return nobody;
}

static void sent_all(struct wire *w)
{
        list_for_each (n, &w->sent)
                wire_sent(w, container_of(n, struct outgoing, node), OUTCOME_SENT);
}

static int nats_flush(struct wire *w, struct err *e)
{
        natsStatus s = natsConnection_FlushTimeout(nats_of(w)->connection, w->timeout_ms);

        if (s != NATS_OK)
                return fail(e, s, "flush");
        sent_all(w);
        return 0;
}

static int nats_send(struct wire *w, struct outgoing *m, struct err *e)
{
        struct nats *t = nats_of(w);
        natsMsg *msg = NULL;
        natsStatus s = make(w, m, &msg);

        if (s != NATS_OK) {
                wire_sent(w, m, OUTCOME_REFUSED);
                return 0;
        }
        s = natsConnection_PublishMsg(t->connection, msg);
        natsMsg_Destroy(msg);
        if (s == NATS_MAX_PAYLOAD) {
                wire_sent(w, m, OUTCOME_TOO_LARGE);
                return 0;
        }
        if (s != NATS_OK)
                return fail(e, s, "publish");
        if (!m->probe)
                return 0;
        s = natsConnection_FlushTimeout(t->connection, w->timeout_ms);
        if (s != NATS_OK)
                return fail(e, s, "flush");
        if (nobody_listened(t))
                wire_sent(w, m, OUTCOME_NO_RECEIVER);
        sent_all(w);
        return 0;
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
        .poll = nats_poll,
        .run = nats_run,
        .send = nats_send,
        .flush = nats_flush,
        .pause = nats_pause,
};
