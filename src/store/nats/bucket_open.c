/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "base/base.h"
#include "store/nats/bucket.h"
#include "store/nats_url.h"

#define CONNECT_MS_MAX 5000
#define PING_MS        10000

static int failed(struct err *e, natsStatus s, const char *doing)
{
        return err_set(e, ERR_UNAVAILABLE, "%s: %s", doing, bucket__reason(s));
}

/* --- called by the library, from its threads --- */

static void on_closed(natsConnection *nc, void *closure)
{
        struct bucket *b = closure;
        const char *why = NULL;

        (void) natsConnection_GetLastError(nc, &why);
        b->lost(b, why && *why ? why : "it closed the connection");
}

/* Without a handler the library prints. Errors are reported again by the call that fails, except permission errors: the server
 * reports them here, and never answers the request. */
static void on_error(natsConnection *nc, natsSubscription *sub, natsStatus s, void *closure)
{
        struct bucket *b = closure;
        const char *why = NULL;

        (void) sub;
        if (s != NATS_NOT_PERMITTED)
                return;
        (void) natsConnection_GetLastError(nc, &why);
        b->lost(b, why && *why ? why : "it does not permit what the store needs");
}

/* --- options --- */

static natsStatus set_tls(natsOptions *o, const struct nats_settings *s, const char *host)
{
        natsStatus r = natsOptions_SetSecure(o, true);

        if (r == NATS_OK && s->ca_file)
                r = natsOptions_LoadCATrustedCertificates(o, s->ca_file);
        if (r == NATS_OK && s->cert_file)
                r = natsOptions_LoadCertificatesChain(o, s->cert_file, s->key_file);
        /* The library verifies the name only if it is set. */
        return r == NATS_OK ? natsOptions_SetExpectedHostname(o, host) : r;
}

static int set_credentials(natsOptions *o, const struct nats_settings *s, struct err *e)
{
        scoped(secret_freep) struct secret *password = NULL, *token = NULL;
        natsStatus status = NATS_OK;
        int r = nats_settings_secret(s->password_file, &password, e);

        if (r == 0)
                r = nats_settings_secret(s->token_file, &token, e);
        if (r < 0)
                return r;
        if (s->user)
                status = natsOptions_SetUserInfo(o, s->user,
                                                 password ? secret_expose(password).p : "");
        if (status == NATS_OK && token)
                status = natsOptions_SetToken(o, secret_expose(token).p);
        if (status == NATS_OK && s->credentials_file)
                status = natsOptions_SetUserCredentialsFromFiles(o, s->credentials_file, NULL);
        return status == NATS_OK ? 0 : failed(e, status, "credentials");
}

/* No reconnect: the library would send what was published meanwhile later, when no one expects it. */
static natsStatus set_options(natsOptions *o, struct bucket *b)
{
        int64_t wait = b->settings->wait_ms;
        natsStatus s = natsOptions_SetName(o, "hutch-store-nats");

        if (s == NATS_OK)
                s = natsOptions_SetAllowReconnect(o, false);
        if (s == NATS_OK)
                s = natsOptions_SetFailRequestsOnDisconnect(o, true);
        if (s == NATS_OK)
                s = natsOptions_SetTimeout(o, MIN_OF(wait, CONNECT_MS_MAX));
        if (s == NATS_OK)
                s = natsOptions_SetWriteDeadline(o, wait);
        if (s == NATS_OK)
                s = natsOptions_SetPingInterval(o, PING_MS);
        if (s == NATS_OK)
                s = natsOptions_SetSendAsap(o, true);
        if (s == NATS_OK)
                s = natsOptions_SetClosedCB(o, on_closed, b);
        if (s == NATS_OK)
                s = natsOptions_SetErrorHandler(o, on_error, b);
        return s;
}

static void options_destroy(natsOptions **o)
{
        natsOptions_Destroy(*o);
}

/* --- connecting --- */

static int connect_to(struct bucket *b, const struct nats_url *url, struct err *e)
{
        scoped(options_destroy) natsOptions *o = NULL;
        char host[NATS_HOST_MAX + 1], text[NATS_HOST_MAX + 32];
        natsStatus s = natsOptions_Create(&o);

        (void) snprintf(host, sizeof(host), "%.*s", STR_ARG(url->host));
        (void) snprintf(text, sizeof(text), "%s://%s%s%s:%u", url->tls ? "tls" : "nats",
                        url->bracketed ? "[" : "", host, url->bracketed ? "]" : "", url->port);
        if (s == NATS_OK)
                s = natsOptions_SetURL(o, text);
        if (s == NATS_OK)
                s = set_options(o, b);
        if (s == NATS_OK && url->tls)
                s = set_tls(o, b->settings, host);
        if (s != NATS_OK)
                return failed(e, s, "prepare a connection");
        if (set_credentials(o, b->settings, e) < 0)
                return err_wrap(e, "prepare a connection");
        s = natsConnection_Connect(&b->connection, o);
        return s == NATS_OK ? 0 : failed(e, s, "connect");
}

/* --- the bucket --- */

static const char *check_config(const struct bucket *b, const jsStreamConfig *c)
{
        char all[sizeof(b->subjects) + 1];

        (void) snprintf(all, sizeof(all), "%s>", b->subjects);
        if (c->SubjectsLen != 1 || strcmp(c->Subjects[0], all) != 0)
                return "it has other subjects than those of a bucket";
        if (c->Mirror || c->SourcesLen > 0)
                return "it is a mirror of another one";
        if (c->Sealed || c->DenyPurge)
                return "it is sealed, or denies purges, which markers of removed keys need";
        if (c->NoAck || c->Retention != js_LimitsPolicy)
                return "it does not acknowledge, or drops what was read";
        if (c->Storage != js_FileStorage)
                return "it is kept in memory (storage): records would be lost with the server";
        if (c->Replicas < (int64_t) b->settings->replicas)
                return "it has fewer replicas than store.replicas says";
        if (c->MaxAge > 0)
                return "its values expire (max_age, ttl): records would be lost";
        if (c->Discard == js_DiscardOld && (c->MaxMsgs > 0 || c->MaxBytes > 0))
                return "it drops old values when it is full (discard: old): records would be lost";
        if (c->MaxMsgSize > 0 && (size_t) c->MaxMsgSize < STORE_VALUE_MAX)
                return "its values may not be large enough (max_msg_size): 1 MiB is needed";
        return NULL;
}

static int find_bucket(struct bucket *b, bool make, struct err *e)
{
        jsStreamInfo *info = NULL;
        jsErrCode code = 0;
        natsStatus s = js_GetStreamInfo(&info, b->js, b->stream, NULL, &code);
        kvConfig config;
        kvStore *kv = NULL;
        const char *wrong;
        int r;

        if (s == NATS_NOT_FOUND && make) {
                (void) kvConfig_Init(&config);
                config.Bucket = b->settings->bucket;
                config.Description = "Hutch: sandboxes, their owners, keys";
                config.History = 1;
                config.StorageType = js_FileStorage;
                config.Replicas = (int) b->settings->replicas;
                s = js_CreateKeyValue(&kv, b->js, &config);
                kvStore_Destroy(kv);
                return s == NATS_OK ? find_bucket(b, false, e) : failed(e, s, "create the bucket");
        }
        if (s == NATS_NO_RESPONDERS || code == JSNotEnabledErr || code == JSNotEnabledForAccountErr)
                return err_set(e, ERR_UNAVAILABLE,
                               "JetStream is not enabled on the server or for the account");
        if (s != NATS_OK)
                return failed(e, s, "find the bucket");
        wrong = check_config(b, info->Config);
        r = wrong ? err_set(
                    e, ERR_UNAVAILABLE,
                    "the bucket %s does not fit: %s; change its stream %s, or choose another "
                    "store.bucket",
                    b->settings->bucket, wrong, b->stream)
                  : 0;
        jsStreamInfo_Destroy(info);
        return r;
}

/* --- opening --- */

int bucket_open(struct bucket *b, const struct nats_settings *settings,
                void (*lost)(struct bucket *b, const char *why), struct err *e)
{
        struct str urls = settings->urls;
        struct nats_url url;
        jsOptions o;
        natsStatus s;
        int r;

        *b = (struct bucket){ .settings = settings, .lost = lost };
        list_init(&b->markers);
        (void) snprintf(b->stream, sizeof(b->stream), "KV_%s", settings->bucket);
        (void) snprintf(b->subjects, sizeof(b->subjects), "$KV.%s.", settings->bucket);
        r = pthread_mutex_init(&b->scanning, NULL);
        if (r == 0)
                r = pthread_mutex_init(&b->lock, NULL);
        if (r == 0)
                r = pthread_cond_init(&b->marked, NULL);
        if (r != 0)
                return err_errno(e, -r, "make locks");
        s = nats_Open(-1);
        if (s != NATS_OK)
                return failed(e, s, "start the library");
        /* One after the other, each with its own name to verify: the library knows one name for all servers. */
        r = err_set(e, ERR_INVALID, "there is no URL");
        while (r < 0 && urls.n > 0 && !nats_url_take(&urls, &url))
                r = connect_to(b, &url, e);
        if (r < 0)
                return r;
        b->payload_max = natsConnection_GetMaxPayload(b->connection);
        if (b->payload_max < (int64_t) STORE_VALUE_MAX)
                return err_set(e, ERR_UNAVAILABLE,
                               "its max_payload is %" PRId64
                               " bytes; at least %zu, its default, are "
                               "needed",
                               b->payload_max, STORE_VALUE_MAX);
        (void) jsOptions_Init(&o);
        o.Wait = settings->wait_ms;
        s = natsConnection_JetStream(&b->js, b->connection, &o);
        return s == NATS_OK ? find_bucket(b, true, e) : failed(e, s, "use JetStream");
}
