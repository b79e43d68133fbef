/* SPDX-License-Identifier: Apache-2.0 */

/*
 * hutch-store-nats: carries out the calls of a store on a NATS bucket (store/nats/bucket.h) for hutchd, which is at the other
 * end of standard input (store/nats_protocol.h).
 *
 *         main thread   only reads requests, so it notices at once when hutchd exits
 *         first worker  connects, reports that, and becomes a worker
 *         workers       each carries out one request at a time and writes its reply
 *         sweeper       purges old markers
 *
 * hutchd never has two requests for one key in flight, so workers need no order. When the connection is lost, the process
 * reports the reason and exits, whatever its threads are doing: hutchd starts another one. The kernel cleans up.
 */

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "store/nats/bucket.h"
#include "store/nats_protocol.h"
#include "store/store_impl.h"

#define WORKERS   16
#define STACK_MAX (1 * MiB)

struct request {
        struct list node;
        struct nats_message message;
        char bytes[];
};

static struct {
        struct nats_settings settings;
        struct bucket bucket;
        pthread_mutex_t lock; /* of the requests; hutchd limits their number */
        pthread_cond_t there;
        struct list requests;
        pthread_mutex_t out; /* of the socket, for writing */
} helper = { .lock = PTHREAD_MUTEX_INITIALIZER,
             .there = PTHREAD_COND_INITIALIZER,
             .out = PTHREAD_MUTEX_INITIALIZER };

/* --- replies --- */

static bool write_all(struct str text)
{
        while (text.n > 0) {
                ssize_t n = send(STDIN_FILENO, text.p, text.n, MSG_NOSIGNAL);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return false;
                text = str_skip(text, (size_t) n);
        }
        return true;
}

static void send_reply(struct nats_message m)
{
        scoped(buf_done) struct buf out;

        buf_init(&out, NATS_FRAME_MAX);
        nats_frame_add(&out, &m);
        (void) pthread_mutex_lock(&helper.out);
        if (buf_failed(&out) || !write_all(buf_str(&out)))
                _exit(1);
        (void) pthread_mutex_unlock(&helper.out);
}

static struct nats_message failure(uint64_t request_id, enum err_code code, const char *message)
{
        return (struct nats_message){ .request_id = request_id,
                                      .what = 1 + (uint32_t) code,
                                      .first = str_from(message) };
}

/* The lock of the socket is kept: nothing is written after this. */
static never_returns void helper_exit(const char *why)
{
        struct nats_message m = failure(0, ERR_UNAVAILABLE, why);
        scoped(buf_done) struct buf out;

        buf_init(&out, NATS_FRAME_MAX);
        nats_frame_add(&out, &m);
        (void) pthread_mutex_lock(&helper.out);
        (void) write_all(buf_str(&out));
        _exit(1);
}

static void lost(struct bucket *b, const char *why)
{
        (void) b;
        helper_exit(why);
}

/* --- requests --- */

static int carry_out(const struct nats_message *q, struct buf *out, struct nats_message *a,
                     struct err *e)
{
        struct bucket_write w = { .key = q->first, .value = q->second, .expected = q->version };
        struct bucket_page page = {
                .prefix = q->first, .after = q->second, .limit = q->limit, .entries = out
        };
        struct bucket *b = &helper.bucket;
        int r;

        switch (q->what) {
        case STORE_CALL_GET:
                return bucket_get(b, q->first, out, &a->version, e);
        case STORE_CALL_PUT:
                r = bucket_put(b, &w, e);
                break;
        case STORE_CALL_REMOVE:
                return bucket_remove(b, q->first, q->version, e);
        case STORE_CALL_CAS:
                r = bucket_cas(b, &w, e);
                break;
        case STORE_CALL_SCAN:
                r = bucket_scan(b, &page, e);
                a->limit = page.more;
                return r;
        default:
                return err_set(e, ERR_INTERNAL, "a call that does not exist");
        }
        a->version = w.version;
        return r;
}

static void *work(void *unused)
{
        (void) unused;
        for (;;) {
                struct nats_message a = { 0 };
                scoped(buf_done) struct buf out;
                struct request *q;
                struct err e;

                (void) pthread_mutex_lock(&helper.lock);
                while (list_empty(&helper.requests))
                        (void) pthread_cond_wait(&helper.there, &helper.lock);
                q = container_of(list_first(&helper.requests), struct request, node);
                list_remove(&q->node);
                (void) pthread_mutex_unlock(&helper.lock);
                a.request_id = q->message.request_id;
                buf_init(&out, NATS_MESSAGE_MAX - NATS_MESSAGE_COST);
                if (carry_out(&q->message, &out, &a, &e) < 0)
                        a = failure(a.request_id, e.code, e.message);
                else
                        a.first = buf_str(&out);
                send_reply(a);
                free(q);
        }
        return NULL;
}

/* --- threads --- */

static void *sweep(void *unused)
{
        (void) unused;
        bucket_sweep(&helper.bucket);
}

static void start(void *(*run)(void *) )
{
        pthread_attr_t attributes;
        pthread_t thread;

        if (pthread_attr_init(&attributes) != 0
            || pthread_attr_setstacksize(&attributes, STACK_MAX) != 0
            || pthread_create(&thread, &attributes, run, NULL) != 0)
                helper_exit("the helper cannot create threads");
}

static void *connect_and_work(void *unused)
{
        struct err e;

        if (bucket_open(&helper.bucket, &helper.settings, lost, &e) < 0)
                helper_exit(e.message);
        for (int i = 1; i < WORKERS; i++)
                start(work);
        start(sweep);
        send_reply((struct nats_message){ 0 });
        return work(unused);
}

/* --- reading --- */

static void queue_request(const struct nats_message *f)
{
        struct request *q = xcalloc(1, sizeof(*q) + f->first.n + f->second.n);

        memcpy(q->bytes, f->first.p, f->first.n);
        memcpy(q->bytes + f->first.n, f->second.p, f->second.n);
        q->message = *f;
        q->message.first = str_of(q->bytes, f->first.n);
        q->message.second = str_of(q->bytes + f->first.n, f->second.n);
        (void) pthread_mutex_lock(&helper.lock);
        list_append(&helper.requests, &q->node);
        (void) pthread_cond_signal(&helper.there);
        (void) pthread_mutex_unlock(&helper.lock);
}

static int read_requests(void)
{
        scoped(buf_done) struct buf in;
        struct nats_message f;
        ssize_t n, r;

        buf_init(&in, NATS_FRAME_MAX + 64 * KiB);
        for (;;) {
                char *room = buf_reserve(&in, 64 * KiB);

                if (!room)
                        return 1;
                n = read(STDIN_FILENO, room, 64 * KiB);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0;
                buf_advance(&in, (size_t) n);
                while ((r = nats_frame_read(buf_str(&in), &f)) > 0) {
                        queue_request(&f);
                        buf_consume(&in, (size_t) r);
                }
                if (r < 0)
                        return 1;
                buf_release(&in);
        }
}

int main(int argc, char **argv)
{
        scoped(buf_done) struct buf text;
        enum options_result parsed;
        struct stat st;

        (void) prctl(PR_SET_DUMPABLE,
                     0); /* it holds passwords: other processes of this user must not read them */
        (void) signal(SIGPIPE, SIG_IGN);
        list_init(&helper.requests);
        buf_init(&text, BUF_MAX_LOG_LINE);
        parsed = nats_settings_parse(argc, argv, &helper.settings, &text);
        if (parsed != OPTIONS_RUN) {
                (void) fputs(buf_str(&text).p, parsed == OPTIONS_EXIT_OK ? stdout : stderr);
                return parsed == OPTIONS_EXIT_OK ? 0 : 2;
        }
        if (fstat(STDIN_FILENO, &st) < 0 || !S_ISSOCK(st.st_mode)) {
                (void) fputs(
                        "hutch-store-nats: standard input is not a socket; hutchd starts this program\n",
                        stderr);
                return 2;
        }
        start(connect_and_work);
        _exit(read_requests());
}
