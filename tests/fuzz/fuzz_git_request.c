/* SPDX-License-Identifier: Apache-2.0 */

/* Requests of git's helper, or of a program in its place, to the agent. */

#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "execd/git_credential.h"

static void check_within(struct str part, struct str text)
{
        if (part.p)
                ASSERT(part.p >= text.p && part.p + part.n <= text.p + text.n
                       && (part.n == 0 || !memchr(part.p, '\n', part.n)));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct str text = str_of((const char *) p, n);
        struct git_request q;

        if (git_request_parse(text, &q) < 0)
                return 0;
        ASSERT(q.action.p);
        check_within(q.action, text);
        check_within(q.protocol, text);
        check_within(q.host, text);
        return 0;
}
