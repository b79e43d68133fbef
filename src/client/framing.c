/* SPDX-License-Identifier: Apache-2.0 */
#include "client/framing.h"

#include "base/banned.h"

void framing_init(struct framing *f, size_t max, bool lines)
{
        *f = (struct framing){ .lines = lines };
        buf_init(&f->block, max);
}

void framing_done(struct framing *f)
{
        buf_done(&f->block);
}

static bool is_left_out(struct str line)
{
        static const struct str fields[] = { STR(":"), STR("event:"), STR("id:"), STR("retry:") };

        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                if (str_starts_with(line, fields[i]))
                        return true;
        return str_eq(line, STR("data")) || str_eq(line, STR("event")) || str_eq(line, STR("id"));
}

static int deliver(struct framing *f, framing_event_fn *event, void *data)
{
        struct str all = buf_str(&f->block);
        int r = 0;

        if (f->any && all.n > 0)
                r = event(data, all);
        buf_reset(&f->block);
        f->any = false;
        f->line = 0;
        return r;
}

/* Keeps the line at f->line, without its first `skip` bytes. */
static void save_line(struct framing *f, size_t skip)
{
        struct str line = str_skip(buf_str(&f->block), f->line + skip);

        /* The buffer is writable, and this only moves bytes to its start. */
        memmove((char *) (uintptr_t) line.p - skip, line.p, line.n);
        buf_truncate(&f->block, f->block.n - skip);
        f->any = true;
        f->line = f->block.n;
}

/* A line of the block is complete, without its end. */
static int end_line(struct framing *f, framing_event_fn *event, void *data)
{
        struct str line = str_skip(buf_str(&f->block), f->line);

        if (line.n > 0 && line.p[line.n - 1] == '\r') {
                line.n--;
                buf_truncate(&f->block, f->block.n - 1);
        }
        if (line.n == 0)
                return deliver(f, event, data);
        if (is_left_out(line)) {
                buf_truncate(&f->block, f->line);
                return 0;
        }
        if (str_starts_with(line, STR("data: ")))
                save_line(f, 6);
        else
                save_line(f, str_starts_with(line, STR("data:")) ? 5 : 0);
        if (f->lines)
                return deliver(f, event, data);
        buf_add_char(&f->block, '\n');
        f->line = f->block.n;
        return 0;
}

int framing_feed(struct framing *f, struct str bytes, framing_event_fn *event, void *data)
{
        int r = 0;

        while (r == 0 && bytes.n > 0) {
                ssize_t end = str_find(bytes, '\n');
                struct str part = end < 0 ? bytes : str_of(bytes.p, (size_t) end);

                buf_add_str(&f->block, part);
                if (end >= 0 && !buf_failed(&f->block))
                        r = end_line(f, event, data);
                if (r == 0 && buf_failed(&f->block))
                        r = f->block.no_memory ? -ENOMEM : -E2BIG;
                bytes = end < 0 ? STR_NULL : str_skip(bytes, (size_t) end + 1);
        }
        return r;
}

int framing_finish(struct framing *f, framing_event_fn *event, void *data)
{
        int r = f->block.n > f->line ? end_line(f, event, data) : 0;

        return r < 0 ? r : deliver(f, event, data);
}
