/* SPDX-License-Identifier: Apache-2.0 */
#include "http/share.h"

#include <netinet/in.h>

#include "base/base.h"
#include "http/conn.h"

/* The longest name of a party is that of a tenant or a key; both are far shorter (model/limits.h). A name
 * that is cut shares its cap with another one: too strict, never too lax. */
#define NAME_MAX_ 512

/* --- the table --- */

/* A reference to the share of that name, which may be a new one. */
static struct http_share *share_get(struct http_server *s, enum http_party party, struct str name)
{
        char text[NAME_MAX_ + 1];
        size_t n = MIN_OF(name.n, (size_t) NAME_MAX_);
        struct map_node *found;
        struct http_share *share;

        text[0] = (char) ('0' + party);
        memcpy(text + 1, name.p, n);
        found = map_get(&s->shares, str_of(text, n + 1));
        if (found) {
                share = container_of(found, struct http_share, by_name);
        } else {
                share = xcalloc(1, sizeof(*share) + n + 1);
                share->party = party;
                list_init(&share->waiting);
                memcpy(share->name, text, n + 1);
                map_add(&s->shares, &share->by_name, str_of(share->name, n + 1));
        }
        share->refs++;
        return share;
}

static void share_unref(struct http_server *s, struct http_share *share)
{
        if (!share || --share->refs > 0)
                return;
        map_remove(&s->shares, &share->by_name);
        free(share);
}

static bool is_full(const struct http_server *s, const struct http_share *share, enum http_use use)
{
        unsigned max = s->config.caps.max[share->party][use];

        return max > 0 && share->used[use] >= max;
}

/* --- connections --- */

void conn__queue_in_shares(struct http_conn *c)
{
        for (size_t i = 0; i < ARRAY_SIZE(c->shares); i++) {
                struct conn_share *x = &c->shares[i];
                bool is_address = x->share && x->share->party == HTTP_PARTY_ADDRESS;

                if (!x->share || (c->state == CONN_HEAD && is_address))
                        continue; /* an unfinished head keeps its place in the queue */
                list_remove(&x->node);
                if (c->state == CONN_IDLE)
                        list_append(&x->share->waiting, &x->node);
                if (!is_address)
                        continue;
                list_remove(&c->stranger);
                if (c->state == CONN_IDLE)
                        list_append(&c->server->strangers, &c->stranger);
        }
}

void conn__leave_shares(struct http_conn *c)
{
        for (size_t i = 0; i < ARRAY_SIZE(c->shares); i++) {
                struct http_share *share = TAKE_PTR(c->shares[i].share);

                if (!share)
                        continue;
                list_remove(&c->shares[i].node);
                list_remove(&c->stranger);
                share->used[HTTP_USE_CONNECTIONS]--;
                share_unref(c->server, share);
        }
}

/* Takes the reference. */
static void join_share(struct http_conn *c, size_t i, struct http_share *share)
{
        c->shares[i] = (struct conn_share){ .share = share, .conn = c };
        list_init(&c->shares[i].node);
        list_init(&c->stranger);
        share->used[HTTP_USE_CONNECTIONS]++;
}

/* Makes room for one more connection in a share: closes the one that waits longest, unless its last response
 * is not sent yet. 1: one was closed, 0: that was not needed, -EBUSY: there is none. */
static int evict_from_share(struct http_server *s, struct http_share *share)
{
        struct list *n = list_first(&share->waiting);
        struct http_conn *c = n ? container_of(n, struct conn_share, node)->conn : NULL;

        if (!is_full(s, share, HTTP_USE_CONNECTIONS))
                return 0;
        s->stats.capped.max[share->party][HTTP_USE_CONNECTIONS]++;
        if (!c || stream_pending(&c->stream) > 0)
                return -EBUSY;
        s->stats.evicted++;
        http_conn_close(c, -ETIMEDOUT);
        return 1;
}

struct http_conn *conn__oldest_stranger(const struct http_server *s)
{
        struct list *n = list_first(&s->strangers);
        struct http_conn *c = n ? container_of(n, struct http_conn, stranger) : NULL;

        return c && stream_pending(&c->stream) == 0 ? c : NULL;
}

/* Whoever has one IPv6 address usually has 2^64 of them. */
static struct str address_name(const struct sock_addr *peer, int64_t uid, char storage[static 16])
{
        const struct sockaddr_in *four = (const struct sockaddr_in *) &peer->ss;
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *) &peer->ss;
        const void *from = &uid;
        size_t n = sizeof(uid);

        storage[0] = peer->ss.ss_family == AF_INET6 ? '6' : 'u';
        if (peer->ss.ss_family == AF_INET6)
                from = &six->sin6_addr;
        if (peer->ss.ss_family == AF_INET
            || (peer->ss.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))) {
                storage[0] = '4';
                n = sizeof(four->sin_addr);
                from = peer->ss.ss_family == AF_INET ? (const char *) &four->sin_addr
                                                     : (const char *) &six->sin6_addr + 12;
        }
        memcpy(storage + 1, from, n);
        return str_of(storage, n + 1);
}

int conn__join_address(struct http_conn *c, const struct sock_addr *peer)
{
        struct http_server *s = c->server;
        struct http_share *share;
        char name[16];
        int r;

        if (s->config.caps.max[HTTP_PARTY_ADDRESS][HTTP_USE_CONNECTIONS] == 0)
                return 0;
        share = share_get(s, HTTP_PARTY_ADDRESS, address_name(peer, c->peer_uid, name));
        r = evict_from_share(s, share);
        if (r < 0)
                share_unref(s, share);
        else
                join_share(c, 0, share);
        return r;
}

/* --- requests --- */

/* The connection moves to these shares, if it is not there already. */
static bool move_conn(struct http_conn *c, struct http_share *const shares[static 2],
                      struct http_cap *ret)
{
        if (c->shares[0].share == shares[0] && c->shares[1].share == shares[1])
                return true;
        for (size_t i = 0; i < 2; i++)
                if (shares[i] && shares[i] != c->shares[i].share
                    && evict_from_share(c->server, shares[i]) < 0) {
                        ret->party = shares[i]->party;
                        ret->use = HTTP_USE_CONNECTIONS;
                        return false;
                }
        conn__leave_shares(c);
        for (size_t i = 0; i < 2; i++)
                if (shares[i]) {
                        shares[i]->refs++;
                        join_share(c, i, shares[i]);
                }
        return true;
}

static bool has_room(struct http_req *req, struct http_share *const shares[static 2],
                     struct http_cap *ret)
{
        struct http_server *s = req->server;

        for (size_t i = 0; i < 2; i++)
                if (shares[i] && is_full(s, shares[i], req->_use)) {
                        ret->party = shares[i]->party;
                        ret->use = req->_use;
                        s->stats.capped.max[ret->party][ret->use]++;
                        return false;
                }
        return true;
}

int http_req_charge(struct http_req *req, const struct http_parties *parties, struct http_cap *ret)
{
        struct http_server *s = req->server;
        struct http_share *shares[2] = { share_get(s, HTTP_PARTY_TENANT, parties->tenant) };
        bool charged;

        ASSERT(!req->_shares[0]);
        if (parties->key.p)
                shares[1] = share_get(s, HTTP_PARTY_KEY, parties->key);
        req->_use = req->route && req->route->lasting ? HTTP_USE_STREAMS : HTTP_USE_REQUESTS;
        charged =
                has_room(req, shares, ret)
                && (parties->keeps_connection || !req->_conn || move_conn(req->_conn, shares, ret));
        for (size_t i = 0; i < 2 && shares[i]; i++) {
                if (!charged) {
                        share_unref(s, shares[i]);
                        continue;
                }
                shares[i]->used[req->_use]++;
                req->_shares[i] = shares[i]; /* with its reference */
        }
        if (!charged)
                ret->max = s->config.caps.max[ret->party][ret->use];
        return charged ? 0 : -EBUSY;
}

void req__discharge(struct http_req *req)
{
        for (size_t i = 0; i < ARRAY_SIZE(req->_shares) && req->_shares[i]; i++) {
                struct http_share *share = TAKE_PTR(req->_shares[i]);

                share->used[req->_use]--;
                share_unref(req->server, share);
        }
}
