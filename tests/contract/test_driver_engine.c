/* SPDX-License-Identifier: Apache-2.0 */

/* The drivers of engines, with an engine that was started for this program (tests/lib/with_engine.py).
 *
 * usage: test_driver_engine docker|podman socket|exec */

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "driver/engine/engine.h"
#include "tests/contract/driver_contract.h"
#include "tests/lib/engine_peer.h"

static enum engine_kind kind;
static enum engine_reach reach;

/* Each installation has a data dir of its own, and its worker keeps others out of it. */
static int open_engine(struct driver_world *w, const struct driver_setup *setup,
                       struct driver **ret, struct err *e)
{
        const struct engine_config config = {
                .socket = engine_peer_socket(),
                .worker = getenv("HUTCH_ENGINE"),
                .reach = reach,
                .network = ENGINE_NETWORK_NONE,
        };
        struct driver_setup own = *setup;
        char dir[256];

        (void) snprintf(dir, sizeof(dir), "%s/%.*s", w->dir, STR_ARG(setup->installation));
        check_true(mkdir(dir, 0700) == 0 || errno == EEXIST);
        own.dir = dir;
        return driver_engine_open(&own, kind, &config, ret, e);
}

struct waiting {
        struct agent_exec exec;
        bool done;
};

static void waiting_done(struct op *op, int result)
{
        check_i64_eq(result, 0);
        container_of(op, struct waiting, exec.req.op)->done = true;
}

/* The entrypoint ends with 0 from the moment on when it has made this file. */
static void wait_until_ready(struct driver_world *w, struct str id)
{
        char name[64];
        struct sandbox *record;
        struct waiting x = { .exec.command = STR("until test -e .ready; do sleep 0.02; done") };

        (void) snprintf(name, sizeof(name), "%.*s", STR_ARG(id));
        record = driver_world_record(name);
        op_init(&x.exec.req.op, waiting_done);
        agent_exec(w->agents, &x.exec, w->driver, record);
        driver_world_until(w, x.done);
        agent_exec_done(&x.exec);
        sandbox_free(record);
}

static void engine_kill(struct driver_world *w, struct str id, int status)
{
        char name[ENGINE_PEER_NAME];

        if (status == RUNTIME_ENDED)
                wait_until_ready(w, id);
        engine_peer_find(id, name);
        engine_peer_do("POST", NULL, "/containers/%s/kill?signal=%s", name,
                       status == RUNTIME_ENDED ? "TERM" : "KILL");
}

/* Labels can't be changed: the container is replaced by another. What may have been copied into it, the
 * agent, is not in that one. */
static void engine_spoil(struct driver_world *w, struct str id)
{
        char name[ENGINE_PEER_NAME];
        json_t *all, *expected, *value;
        const char *key;

        engine_peer_find(id, name);
        all = engine_peer_get("/containers/%s/json", name);
        expected = json_object_get(all, "Config");
        /* Podman tells these in words that it does not take. */
        (void) json_object_del(json_object_get(all, "HostConfig"), "Ulimits");
        check_i64_eq(json_object_set(expected, "HostConfig", json_object_get(all, "HostConfig")),
                     0);
        json_object_foreach(json_object_get(expected, "Labels"), key, value)
        {
                if (json_string_length(value) > 100)
                        (void) json_string_setn(value, json_string_value(value), 100);
        }
        (void) json_object_set_new(expected, "Entrypoint", json_pack("[ss]", "sleep", "100000"));
        if (reach == ENGINE_REACH_EXEC) /* the agent was uploaded, and is not in the new one */
                check_i64_eq(json_object_set_new(expected, "Entrypoint",
                                                 json_pack("[ss]", "sleep", "1000")),
                             0);
        engine_peer_do("DELETE", NULL, "/containers/%s?force=1", name);
        engine_peer_do("POST", expected, "/containers/create?name=%s", name);
        engine_peer_do("POST", NULL, "/containers/%s/start", name);
        json_decref(all);
}

static void engine_end(struct driver_world *w)
{
        engine_peer_remove_all();
}

int main(int argc, char **argv)
{
        static const struct driver_maker maker = {
                .name = "engine",
                .open = open_engine,
                .end = engine_end,
                .kill = engine_kill,
                .spoil = engine_spoil,
                .bad_entrypoint = "/no/such/program",
                .many = 12,
                .real_agent = true,
        };

        if (argc != 3 || !engine_peer_socket())
                return 2;
        kind = engine_kind_from_string(str_from(argv[1]));
        reach = engine_reach_from_string(str_from(argv[2]));
        if ((int) kind < 0 || (int) reach < 0)
                return 2;
        return driver_contract_run(&maker);
}
