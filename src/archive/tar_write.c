/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/tar.h"

#include <inttypes.h>

#include "base/base.h"
#include "archive/tar_block.h"

static bool is_ascii(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if ((unsigned char) s.p[i] >= 0x80)
                        return false;
        return true;
}

/* --- the pax header --- */

/* "LEN key=value\n", where LEN counts its own digits. */
static void add_record(struct buf *b, struct str key, struct str value)
{
        size_t rest = key.n + value.n + 3, n = rest + 1;

        for (size_t digits = 1, limit = 10; n >= limit; limit *= 10)
                n = rest + ++digits;
        buf_add_u64(b, n);
        buf_add_char(b, ' ');
        buf_add_str(b, key);
        buf_add_char(b, '=');
        buf_add_str(b, value);
        buf_add_char(b, '\n');
}

static void add_number_record(struct buf *b, struct str key, uint64_t v)
{
        char text[24];

        add_record(b, key, str_of(text, (size_t) snprintf(text, sizeof(text), "%" PRIu64, v)));
}

/* -0.25 s is second -1 and 750 000 000 ns to the kernel, and "-0.25" in pax. */
static void add_time_record(struct buf *b, int64_t sec, uint32_t nsec)
{
        bool negative = sec < 0;
        uint64_t seconds = negative ? -(uint64_t) sec : (uint64_t) sec;
        char text[40];
        int n;

        if (negative && nsec > 0) {
                seconds--;
                nsec = 1000000000 - nsec;
        }
        n = snprintf(text, sizeof(text), "%s%" PRIu64 ".%09" PRIu32, negative ? "-" : "", seconds,
                     nsec);
        add_record(b, STR("mtime"), str_of(text, (size_t) n));
}

/* --- the block --- */

/* Where to split a name so that the part before the slash fits into the prefix and the other into the
 * name; 0: no prefix needed, -1: it does not fit. */
static ssize_t split_name(struct str name)
{
        if (name.n <= sizeof(((struct tar_block *) 0)->name))
                return 0;
        for (size_t i = name.n - 1; i > 0; i--) {
                if (name.p[i] != '/' || i > sizeof(((struct tar_block *) 0)->prefix))
                        continue;
                if (name.n - i - 1 == 0)
                        continue;
                if (name.n - i - 1 > sizeof(((struct tar_block *) 0)->name))
                        return -1;
                return (ssize_t) i;
        }
        return -1;
}

static bool fits(uint64_t v, size_t field)
{
        return v >> (3 * (field - 1)) == 0;
}

/* Values that do not fit are in the pax header, which takes precedence. */
static void set_octal(char *field, size_t size, uint64_t v)
{
        char text[24];

        (void) snprintf(text, sizeof(text), "%0*" PRIo64, (int) size - 1, fits(v, size) ? v : 0);
        memcpy(field, text, size - 1);
        field[size - 1] = '\0';
}

#define OCTAL(field, v) set_octal((field), sizeof(field), (v))

static void set_text(char *field, size_t size, struct str s)
{
        memcpy(field, s.p ? s.p : "", MIN_OF(size, s.n));
}

static void seal(struct tar_block *h)
{
        const unsigned char *p = (const void *) h;
        unsigned sum = 0;

        memset(h->checksum, ' ', sizeof(h->checksum));
        for (size_t i = 0; i < sizeof(*h); i++)
                sum += p[i];
        (void) snprintf(h->checksum, sizeof(h->checksum) - 1, "%06o", sum);
        h->checksum[sizeof(h->checksum) - 1] = ' ';
}

static void fill_block(struct tar_block *h, const struct tar_entry *e)
{
        static const char letters[] = "0123456";

        h->type = letters[e->type];
        OCTAL(h->mode, e->mode & 07777);
        OCTAL(h->uid, e->uid);
        OCTAL(h->gid, e->gid);
        OCTAL(h->size, e->size);
        OCTAL(h->mtime, e->mtime < 0 ? 0 : (uint64_t) e->mtime);
        OCTAL(h->dev_major, 0);
        OCTAL(h->dev_minor, 0);
        set_text(h->link, sizeof(h->link), e->link);
        memcpy(h->magic, "ustar", sizeof(h->magic));
        memcpy(h->version, "00", sizeof(h->version));
}

static void add_zeros(struct buf *b, size_t n)
{
        char *p = buf_reserve(b, n);

        if (!p)
                return;
        memset(p, 0, n);
        buf_advance(b, n);
}

/* The pax records that this entry needs. */
static void add_records(struct buf *b, const struct tar_entry *e, unsigned flags)
{
        bool name = split_name(e->name) < 0 || !is_ascii(e->name);
        bool link = e->link.n > sizeof(((struct tar_block *) 0)->link) || !is_ascii(e->link);

        if ((name && !str_is_utf8(e->name)) || (link && !str_is_utf8(e->link)))
                add_record(b, STR("hdrcharset"), STR("BINARY"));
        if (name)
                add_record(b, STR("path"), e->name);
        if (link)
                add_record(b, STR("linkpath"), e->link);
        if (!fits(e->size, sizeof(((struct tar_block *) 0)->size)))
                add_number_record(b, STR("size"), e->size);
        if (!fits(e->uid, sizeof(((struct tar_block *) 0)->uid)))
                add_number_record(b, STR("uid"), e->uid);
        if (!fits(e->gid, sizeof(((struct tar_block *) 0)->gid)))
                add_number_record(b, STR("gid"), e->gid);
        if (e->mtime < 0 || !fits((uint64_t) e->mtime, sizeof(((struct tar_block *) 0)->mtime))
            || ((flags & TAR_WRITE_NSEC) && e->mtime_nsec))
                add_time_record(b, e->mtime, e->mtime_nsec);
}

void tar_write_header(struct buf *b, const struct tar_entry *e, unsigned flags)
{
        struct tar_block h = { 0 };
        ssize_t cut = split_name(e->name);
        scoped(buf_done) struct buf records;

        buf_init(&records, TAR_HEADER_MAX);
        add_records(&records, e, flags);
        if (records.n > 0) {
                const struct tar_entry x = { .name = STR("PaxHeader"),
                                             .size = records.n,
                                             .mode = 0644 };

                fill_block(&h, &x);
                set_text(h.name, sizeof(h.name), x.name);
                h.type = 'x';
                seal(&h);
                buf_add(b, &h, sizeof(h));
                buf_add_str(b, buf_str(&records));
                add_zeros(b, tar_padding(records.n));
                memset(&h, 0, sizeof(h));
        }
        b->failed |= records.failed;
        fill_block(&h, e);
        if (cut > 0)
                set_text(h.prefix, sizeof(h.prefix), str_of(e->name.p, (size_t) cut));
        set_text(h.name, sizeof(h.name), str_skip(e->name, cut > 0 ? (size_t) cut + 1 : 0));
        seal(&h);
        buf_add(b, &h, sizeof(h));
}

void tar_write_end(struct buf *b)
{
        add_zeros(b, 2 * (size_t) TAR_BLOCK);
}
