/* SPDX-License-Identifier: Apache-2.0 */

/* hutchd: parses the command line and runs the daemon. */

#include <stdio.h>

#include "base/base.h"
#include "hutchd/daemon.h"
#include "hutchd/options.h"

int main(int argc, char **argv)
{
        scoped(buf_done) struct buf text;
        struct options o;
        enum options_result parsed;

        buf_init(&text, BUF_MAX_LOG_LINE);
        parsed = hutchd_options_parse(argc, argv, &o, &text);
        if (parsed == OPTIONS_RUN)
                return daemon_run(&o, argv);
        (void) fputs(buf_str(&text).p, parsed == OPTIONS_EXIT_OK ? stdout : stderr);
        return parsed == OPTIONS_EXIT_OK ? 0 : 2;
}
