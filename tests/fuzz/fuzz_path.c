/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

#include <limits.h>

#include "base/base.h"
#include "execd/path.h"

/* Whatever is given, the result is absolute, has no NUL inside, and survives its own URI. */

static void check_uri(const struct agent *agent, struct arena *a, struct str path)
{
        char room[3 * PATH_MAX + 16];
        struct err e;
        struct buf b;
        struct str again;

        buf_init_fixed(&b, room, sizeof(room));
        path_add_uri(&b, path);
        ASSERT(!buf_failed(&b) && str_is_utf8(buf_str(&b)));
        ASSERT(path_resolve(agent, a, buf_str(&b), &again, &e) == 0);
        ASSERT(str_eq(again, path));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        static char *const vars[] = { (char *) "HOME=/h", (char *) "A=/a", (char *) "B=~",
                                      (char *) "EXECD_ENVS=", NULL };
        struct agent agent = { .config.workspace = STR("/base") };
        struct arena arena;
        struct str path;
        struct err e = { 0 };
        int r;

        agent.users = users_new("/dev/null", "/dev/null");
        environment_init(&agent.env, vars);
        arena_init(&arena, MiB);
        r = path_resolve(&agent, &arena, str_of((const char *) p, n), &path, &e);
        if (r == 0) {
                ASSERT(path.n > 0 && path.n < PATH_MAX && path.p[0] == '/');
                ASSERT(path.p[path.n] == '\0' && strlen(path.p) == path.n);
                check_uri(&agent, &arena, path);
        } else {
                ASSERT(r == ERR_RETURN(e.code) && e.message[0]);
        }
        arena_done(&arena);
        environment_done(&agent.env);
        users_free(agent.users);
        return 0;
}
