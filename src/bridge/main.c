/* SPDX-License-Identifier: Apache-2.0 */

/* hutch-bridge: parses the command line and runs the bridge. */

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "bridge/bridge.h"
#include "bridge/settings.h"

int main(int argc, char **argv)
{
        scoped(buf_done) struct buf text;
        struct log_sink sink = { .fd = STDERR_FILENO, .clock = &clock_system };
        struct settings *s = NULL;
        struct log_ctx log;
        enum options_result parsed;
        int status;

        buf_init(&text, BUF_MAX_LOG_LINE);
        parsed = settings_parse(argc, argv, &s, &text);
        if (parsed != OPTIONS_RUN) {
                (void) fputs(buf_str(&text).p, parsed == OPTIONS_EXIT_OK ? stdout : stderr);
                return parsed == OPTIONS_EXIT_OK ? 0 : 2;
        }
        sink.level = s->log_level;
        sink.format = s->log_format;
        log_ctx_init_root(&log, &sink);
        (void) signal(SIGPIPE, SIG_IGN);
        status = bridge_run(s, &log);
        settings_free(s);
        return status;
}
