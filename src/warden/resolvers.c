/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/resolvers.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/base.h"
#include "os/virtual_file.h"
#include "warden/netrules.h"

#define FILE_MAX   (4 * KiB)
#define OWN_MAX    256
#define LIST_TRIES 5

/* --- reading --- */

static bool parse_address(struct str text, struct link_addr *ret)
{
        char z[INET6_ADDRSTRLEN];

        if (text.n >= sizeof(z))
                return false;
        (void) snprintf(z, sizeof(z), "%.*s", STR_ARG(text));
        *ret = (struct link_addr){ .family = str_find(text, ':') >= 0 ? AF_INET6 : AF_INET };
        return inet_pton(ret->family, z, &ret->v6) == 1;
}

int resolvers_parse(struct str list, struct resolvers *ret)
{
        struct resolvers r = { 0 };
        struct str word;

        while (str_split(&list, ',', &word)) {
                struct link_addr a;

                if (!parse_address(word, &a))
                        return -EINVAL;
                if (r.n < RESOLVERS_MAX)
                        r.v[r.n++] = a;
        }
        *ret = r;
        return 0;
}

static bool is_among(const struct link_addr *a, const struct link_addr *list, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (a->family == list[i].family
                    && memcmp(&a->v6, &list[i].v6, link_addr_size(a)) == 0)
                        return true;
        return false;
}

/* Lines "nameserver ADDRESS". An address with a scope ("fe80::1%eth0") is not valid in a sandbox. */
void resolvers_read(struct str text, const struct link_addr *own, size_t n_own,
                    struct resolvers *ret)
{
        const struct str key = STR("nameserver");
        struct str line;

        *ret = (struct resolvers){ 0 };
        while (ret->n < RESOLVERS_MAX && str_split(&text, '\n', &line)) {
                struct link_addr a;

                if (!str_starts_with(line, key))
                        continue;
                line = str_skip(line, key.n);
                if (line.n == 0 || (line.p[0] != ' ' && line.p[0] != '\t'))
                        continue;
                if (parse_address(str_trim(line), &a) && !netrules_are_closed_to(&a)
                    && !is_among(&a, own, n_own))
                        ret->v[ret->n++] = a;
        }
}

/* --- of the host --- */

struct own {
        struct link_addr v[OWN_MAX];
        size_t n;
};

static int add_own(void *data, const struct link_addr *a, int link)
{
        struct own *o = data;

        (void) link;
        if (o->n < OWN_MAX)
                o->v[o->n++] = *a;
        return 0;
}

static void find_on_host(struct resolvers *ret)
{
        static const char *const files[] = { "/etc/resolv.conf",
                                             "/run/systemd/resolve/resolv.conf" };
        static struct netlink_batch batch;
        static struct own own;
        struct netlink nl = NETLINK_NULL;
        char text[FILE_MAX];
        int r = netlink_open(NETLINK_ROUTE, &nl);

        for (int i = 0; r == 0 && i < LIST_TRIES; i++) {
                own.n = 0;
                if (link_list_addresses(&nl, &batch, add_own, &own) != -EAGAIN)
                        break;
        }
        netlink_close(&nl);
        for (size_t i = 0; i < ARRAY_SIZE(files) && ret->n == 0; i++) {
                ssize_t n = virtual_file_read(files[i], text, sizeof(text));

                if (n > 0)
                        resolvers_read(str_of(text, (size_t) n), own.v, own.n, ret);
        }
}

size_t resolvers_find(const struct resolvers *configured, struct buf *ret)
{
        struct resolvers r = *configured;
        char text[INET6_ADDRSTRLEN];

        if (r.n == 0)
                find_on_host(&r);
        if (r.n == 0)
                buf_add_str(ret, STR("# None of the host's resolvers can be reached from here.\n"));
        for (size_t i = 0; i < r.n; i++)
                buf_addf(ret, "nameserver %s\n",
                         inet_ntop(r.v[i].family, &r.v[i].v6, text, sizeof(text)));
        return r.n;
}
