/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/virtual_file.h"
#include "tests/contract/driver_contract.h"
#include "tests/direct/driver_direct.h"

static int open_direct(struct driver_world *w, const struct driver_setup *setup,
                       struct driver **ret, struct err *e)
{
        return driver_direct_open(setup, ret, e);
}

static void path_of(struct driver_world *w, struct str id, const char *name, char ret[static 256])
{
        (void) snprintf(ret, 256, "%s/%s/%.*s/%s", w->dir, WORLD_INSTALLATION, STR_ARG(id), name);
}

/* The agent passes SIGTERM on to the entrypoint, which ends with 0. */
static void direct_kill(struct driver_world *w, struct str id, int status)
{
        char path[256], text[32];
        ssize_t n;
        long pid;

        path_of(w, id, "work/.ready", path);
        driver_world_until(w, access(path, F_OK) == 0);
        path_of(w, id, "agent", path);
        n = virtual_file_read(path, text, sizeof(text));
        check_true(n > 0);
        pid = strtol(text, NULL, 10);
        check_true(pid > 1);
        check_i64_eq(kill((pid_t) pid, status == RUNTIME_ENDED ? SIGTERM : SIGKILL), 0);
}

static void direct_spoil(struct driver_world *w, struct str id)
{
        char path[256];

        path_of(w, id, "record.json", path);
        check_i64_eq(truncate(path, 100), 0);
}

int main(void)
{
        static const struct driver_maker maker = {
                .name = "direct",
                .open = open_direct,
                .kill = direct_kill,
                .spoil = direct_spoil,
                .bad_entrypoint = "/no/such/program",
                .many = 12,
                .real_agent = true,
        };

        return driver_contract_run(&maker);
}
