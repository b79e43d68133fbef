/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/tar.h"

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/run.h"
#include "tests/lib/tar_trace.h"
#include "tests/lib/tree.h"

static char name_300[301], name_100[101], dir_150[151];

/* What the reader says, checked to be the same for several ways of cutting. */
static int read_all(struct str in, struct buf *ret_log)
{
        static const struct cut cuts[] = { { 1, 1 }, { 7, 7 }, { 512, 512 }, { 513, 0 } };
        int r = tar_trace_run(in, CUT_NONE, ret_log);

        for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
                struct buf log;

                check_i64_eq(tar_trace_run(in, cuts[i], &log), r);
                check_view_eq(buf_str(&log), buf_str(ret_log));
                buf_done(&log);
        }
        return r;
}

static bool has(const struct buf *b, const char *text)
{
        return memmem(buf_str(b).p, b->n, text, strlen(text)) != NULL;
}

/* --- what we write, we read --- */

static void test_round_trip(void **state)
{
        const struct {
                const char *name;
                struct tar_entry e;
                unsigned flags;
                size_t blocks; /* of headers */
        } cases[] = {
                { "plain", { TAR_FILE, STR("a/b"), STR(""), 0, 0644, 1, 2, 3, 0 }, 0, 1 },
                { "all types", { TAR_SYMLINK, STR("l"), STR("to"), 0, 0777, 0, 0, 0, 0 }, 0, 1 },
                { "hard link", { TAR_HARDLINK, STR("l"), STR("to"), 0, 0777, 0, 0, 0, 0 }, 0, 1 },
                { "directory", { TAR_DIR, STR("d/"), STR(""), 0, 01777, 0, 0, 0, 0 }, 0, 1 },
                { "device", { TAR_CHAR, STR("null"), STR(""), 0, 0666, 0, 0, 0, 0 }, 0, 1 },
                { "name fills the field",
                  { TAR_FILE, str_from(name_100), STR(""), 0, 0, 0, 0, 0, 0 },
                  0,
                  1 },
                { "prefix", { TAR_FILE, str_from(dir_150), STR(""), 0, 0, 0, 0, 0, 0 }, 0, 1 },
                { "long name", { TAR_FILE, str_from(name_300), STR(""), 0, 0, 0, 0, 0, 0 }, 0, 3 },
                { "long link",
                  { TAR_SYMLINK, STR("l"), str_from(name_300), 0, 0, 0, 0, 0, 0 },
                  0,
                  3 },
                { "not ASCII", { TAR_FILE, STR("\xC3\xBC"), STR(""), 0, 0, 0, 0, 0, 0 }, 0, 3 },
                { "not UTF-8", { TAR_FILE, STR("\xFF"), STR(""), 0, 0, 0, 0, 0, 0 }, 0, 3 },
                { "newline", { TAR_FILE, STR("a\n9 b=c\n"), STR(""), 0, 0, 0, 0, 0, 0 }, 0, 1 },
                { "large ids",
                  { TAR_FILE, STR("a"), STR(""), 0, 0, 07777777, 010000000, 0, 0 },
                  0,
                  3 },
                { "before 1970", { TAR_FILE, STR("a"), STR(""), 0, 0, 0, 0, -7, 0 }, 0, 3 },
                { "just before 1970",
                  { TAR_FILE, STR("a"), STR(""), 0, 0, 0, 0, -1, 750000000 },
                  TAR_WRITE_NSEC,
                  3 },
                { "fraction",
                  { TAR_FILE, STR("a"), STR(""), 0, 0, 0, 0, 1700000000, 1 },
                  TAR_WRITE_NSEC,
                  3 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const struct tar_entry *e = &cases[i].e;
                scoped(buf_done) struct buf b, log;
                struct tar_trace want;

                check_case(cases[i].name);
                buf_init(&b, MiB);
                tar_write_header(&b, e, cases[i].flags);
                check_u64_eq(b.n, cases[i].blocks * TAR_BLOCK);
                tar_write_end(&b);
                check_i64_eq(read_all(buf_str(&b), &log), 0);
                want = (struct tar_trace){ .reader.entry = *e };
                buf_init(&want.log, MiB);
                tar_trace_header(&want);
                buf_add_str(&want.log, STR("\nend\n"));
                check_view_eq(buf_str(&log), buf_str(&want.log));
                buf_done(&want.log);
        }
}

/* Content of 8 GiB needs more than the field holds; the reader waits for all of it. */
static void test_large_size(void **state)
{
        const struct tar_entry e = { TAR_FILE, STR("a"), STR(""), 9 * GiB, 0, 0, 0, 0, 0 };
        scoped(buf_done) struct buf b;
        struct tar_reader t;
        struct str input, data;

        buf_init(&b, MiB);
        tar_write_header(&b, &e, 0);
        tar_reader_init(&t);
        input = buf_str(&b);
        check_i64_eq(tar_reader_next(&t, &input, &data), TAR_HEADER);
        check_u64_eq(t.entry.size, 9 * GiB);
        check_i64_eq(tar_reader_next(&t, &input, &data), TAR_NEED_INPUT);
        check_i64_eq(tar_reader_finish(&t), -EINVAL);
        tar_reader_done(&t);
}

/* --- what is refused --- */

static void mend(struct buf *b, size_t at)
{
        unsigned char *p = (unsigned char *) b->p + b->start + at;
        unsigned sum = 0;

        memset(p + 148, ' ', 8);
        for (size_t i = 0; i < TAR_BLOCK; i++)
                sum += p[i];
        (void) snprintf((char *) p + 148, 7, "%06o", sum);
}

static void test_bad_headers(void **state)
{
        static const struct {
                const char *name;
                size_t at;
                const char *bytes;
                size_t n;
                bool mend;
                int r;
                const char *reason;
        } cases[] = {
                { "checksum", 0, "b", 1, false, -EINVAL, "checksum" },
                { "compressed", 0, "\x1F\x8B", 2, false, -EINVAL, "not an (uncompressed) tar" },
                { "size is no number", 124, "x", 1, true, -EINVAL, "bad number" },
                { "size is negative", 124, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12,
                  true, -EINVAL, "bad number" },
                { "size is endless", 124, "\x80\0\0\0\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 12, true,
                  -EINVAL, "too large" },
                { "size overflows", 124, "\x80\1\0\0\0\0\0\0\0\0\0\0", 12, true, -EINVAL,
                  "bad number" },
                { "sparse", 156, "S", 1, true, -ENOTSUP, "sparse" },
                { "multi-volume", 156, "M", 1, true, -ENOTSUP, "unknown type" },
                { "link with content", 156, "1", 1, true, -EINVAL, "has content" },
                { "directory with content", 156, "5", 1, true, -EINVAL, "has content" },
                { "no name", 0, "\0", 1, true, -EINVAL, "no name" },
                { "long name too long", 124,
                  "00000010002\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0L", 33, true, -E2BIG,
                  "too long" },
                { "pax header too long", 124,
                  "00001000001\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0x", 33, true, -E2BIG,
                  "too long" },
        };
        const struct tar_entry e = { TAR_FILE, STR("a"), STR(""), 1, 0644, 0, 0, 0, 0 };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(buf_done) struct buf b, log;
                char zeros[TAR_BLOCK] = "x";

                check_case(cases[i].name);
                buf_init(&b, MiB);
                tar_write_header(&b, &e, 0);
                memcpy(b.p + b.start + cases[i].at, cases[i].bytes, cases[i].n);
                if (cases[i].mend)
                        mend(&b, 0);
                buf_add(&b, zeros, sizeof(zeros));
                tar_write_end(&b);
                check_i64_eq(read_all(buf_str(&b), &log), cases[i].r);
                check_true(has(&log, cases[i].reason));
        }
}

/* A pax header of this text, then a file "a", then the end. */
static void add_pax(struct buf *b, char type, struct str text)
{
        const struct tar_entry head = { TAR_FILE, STR("x"), STR(""), text.n, 0, 0, 0, 0, 0 };
        const struct tar_entry file = { TAR_FILE, STR("a"), STR(""), 0, 0644, 0, 0, 0, 0 };
        char zeros[TAR_BLOCK] = "";
        size_t at = b->n;

        tar_write_header(b, &head, 0);
        (b->p + b->start)[at + 156] = type;
        mend(b, at);
        buf_add_str(b, text);
        buf_add(b, zeros, tar_padding(text.n));
        tar_write_header(b, &file, 0);
        tar_write_end(b);
}

static void test_pax_records(void **state)
{
        static const struct {
                const char *name;
                char type;
                struct str text;
                int r;
                const char *says;
        } cases[] = {
                { "path", 'x', STR("9 path=b\n"), 0, "file \"b\"" },
                { "last path counts", 'x', STR("9 path=b\n9 path=c\n"), 0, "file \"c\"" },
                { "empty path", 'x', STR("8 path=\n"), 0, "file \"a\"" },
                { "unknown keys", 'x', STR("15 SCHILY.x=\n=\n9 path=b\n"), 0, "file \"b\"" },
                { "Solaris", 'X', STR("9 path=b\n"), 0, "file \"b\"" },
                { "time", 'x', STR("13 mtime=1.5\n"), 0, "mtime=1.500000000" },
                { "negative time", 'x', STR("15 mtime=-1.25\n"), 0, "mtime=-2.750000000" },
                { "negative fraction", 'x', STR("14 mtime=-0.5\n"), 0, "mtime=-1.500000000" },
                { "fine time", 'x', STR("25 mtime=0.9876543219876\n"), 0, "mtime=0.987654321" },
                { "global ids", 'g', STR("9 uid=12\n9 gid=34\n"), 0, "uid=12 gid=34" },
                { "no length", 'x', STR("path=b\n"), -EINVAL, "malformed" },
                { "length too long", 'x', STR("10 path=b\n\n"), -EINVAL, "malformed" },
                { "length beyond the end", 'x', STR("99 path=b\n"), -EINVAL, "malformed" },
                { "length is zero", 'x', STR("0 path=b\n"), -EINVAL, "malformed" },
                { "length is huge", 'x', STR("99999999999999999999 path=b\n"), -EINVAL,
                  "malformed" },
                { "no key", 'x', STR("5 =b\n"), -EINVAL, "malformed" },
                { "NUL in a name", 'x', STR("12 path=b\0c\n"), -EINVAL, "NUL" },
                { "bad number", 'x', STR("9 size=-\n"), -EINVAL, "bad number" },
                { "number too large", 'x', STR("28 size=9999999999999999999\n"), -EINVAL,
                  "bad number" },
                { "bad time", 'x', STR("10 mtime=\n"), 0, "mtime=0.000000000" },
                { "time is text", 'x', STR("13 mtime=1.x\n"), -EINVAL, "bad time" },
                { "sparse", 'x', STR("22 GNU.sparse.major=1\n"), -ENOTSUP, "sparse" },
                { "global name", 'g', STR("9 path=b\n"), -ENOTSUP, "global" },
                { "global size", 'g', STR("9 size=1\n"), -ENOTSUP, "global" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(buf_done) struct buf b, log;

                check_case(cases[i].name);
                buf_init(&b, MiB);
                add_pax(&b, cases[i].type, cases[i].text);
                check_i64_eq(read_all(buf_str(&b), &log), cases[i].r);
                check_true(has(&log, cases[i].says));
        }
}

static void test_cut_archives(void **state)
{
        const struct tar_entry e = { TAR_FILE, STR("a"), STR(""), 600, 0644, 0, 0, 0, 0 };
        char content[1024] = "x";
        scoped(buf_done) struct buf b, log;
        size_t end;

        buf_init(&b, MiB);
        tar_write_header(&b, &e, 0);
        buf_add(&b, content, sizeof(content));
        end = b.n;
        tar_write_end(&b);
        for (size_t n = 0; n < end + TAR_BLOCK; n += 100) {
                check_i64_eq(tar_trace_run(str_of(buf_str(&b).p, n), CUT_NONE, &log), -EINVAL);
                check_true(has(&log, "truncated"));
                buf_done(&log);
        }
        check_i64_eq(tar_trace_run(str_of(buf_str(&b).p, end + TAR_BLOCK), CUT_NONE, &log), 0);
        buf_done(&log);
        /* Behind the mark anything may stand. */
        buf_add_str(&b, STR("garbage"));
        check_i64_eq(tar_trace_run(buf_str(&b), CUT_NONE, &log), 0);
}

/* --- other programs --- */

static const char *const files[] = {
        "plain",         "d/", "d/e/", "d/e/f", "link -> d/e/f", "\xC3\xBC-\xE2\x98\xBA",
        "not-utf8-\xFF", NULL,
};

static void test_gnu_tar_to_us(void **state)
{
        static const char *const formats[] = { "v7", "ustar", "gnu", "oldgnu", "pax" };
        struct tree t;

        tree_open(&t);
        tree_fill(t.fd, files);
        tree_add(t.fd, name_100);
        check_i64_eq(linkat(t.fd, "plain", t.fd, "zz-same", 0), 0);
        for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
                char format[32];
                const char *const argv[] = { "tar", format, "-C", t.path, "--sort=name",
                                             "-cf", "-",    ".",  NULL };
                scoped(buf_done) struct buf b, log;

                check_case(formats[i]);
                (void) snprintf(format, sizeof(format), "--format=%s", formats[i]);
                buf_init(&b, MiB);
                if (run_program(argv, STR(""), &b) == 127)
                        skip_because("no tar");
                check_i64_eq(read_all(buf_str(&b), &log), 0);
                check_true(has(&log, "dir \"./d/e/\""));
                check_true(has(&log, "\nd/e/f\nend\n"));
                check_true(has(&log, "symlink \"./link\" \"d/e/f\""));
                check_true(has(&log, "hardlink \"./zz-same\" \"./plain\""));
                check_true(has(&log, "file \"./\xC3\xBC-\xE2\x98\xBA\""));
                check_true(has(&log, "file \"./not-utf8-\xEF\xBF\xBD\""));
                if (i > 0) /* v7 leaves it out */
                        check_true(has(&log, name_100));
        }
        {
                const char *const argv[] = { "rm", "-rf", t.path, NULL };
                scoped(buf_done) struct buf b;

                buf_init(&b, 100);
                check_i64_eq(run_program(argv, STR(""), &b), 0);
        }
        (void) fd_close(t.fd);
}

static void add_file(struct buf *b, struct str name, struct str content)
{
        const struct tar_entry e = { .type = TAR_FILE,
                                     .name = name,
                                     .link = STR(""),
                                     .size = content.n,
                                     .mode = 0640,
                                     .mtime = 1700000000,
                                     .mtime_nsec = 500000000 };
        char zeros[TAR_BLOCK] = "";

        tar_write_header(b, &e, TAR_WRITE_NSEC);
        buf_add_str(b, content);
        buf_add(b, zeros, tar_padding(content.n));
}

static const char list_script[] =
        "import sys,tarfile\n"
        "t=tarfile.open(fileobj=sys.stdin.buffer,mode='r|')\n"
        "for i in t:\n"
        " d=t.extractfile(i).read() if i.isreg() else b''\n"
        " o=[i.name.encode('utf-8','surrogateescape'),oct(i.mode).encode(),str(i.mtime).encode(),d]\n"
        " sys.stdout.buffer.write(b' '.join(o)+b'\\n')\n";

static void test_us_to_others(void **state)
{
        static const char *const python[] = { "python3", "-c", list_script, NULL };
        static const char *const tar[] = { "tar", "-tvf", "-", "--quoting-style=literal", NULL };
        scoped(buf_done) struct buf b, out, want;

        buf_init(&b, MiB);
        buf_init(&out, MiB);
        buf_init(&want, MiB);
        add_file(&b, STR("a"), STR("content"));
        add_file(&b, str_from(name_300), STR(""));
        add_file(&b, str_from(dir_150), STR("1"));
        add_file(&b, STR("\xFF"), STR("2"));
        tar_write_end(&b);
        if (run_program(python, buf_str(&b), &out) == 127)
                skip_because("no python3");
        buf_addf(&want,
                 "a 0o640 1700000000.5 content\n%s 0o640 1700000000.5 \n%s 0o640 1700000000.5 1\n"
                 "\xFF 0o640 1700000000.5 2\n",
                 name_300, dir_150);
        check_view_eq(buf_str(&out), buf_str(&want));
        buf_reset(&out);
        if (run_program(tar, buf_str(&b), &out) == 127)
                skip_because("no tar");
        check_true(has(&out, "-rw-r-----"));
        check_true(has(&out, name_300));
        check_true(has(&out, " \xFF\n"));
}

static int set_names(void **state)
{
        (void) state;
        memset(name_300, 'n', 300);
        memset(name_100, 'h', 100);
        memset(dir_150, 'd', 150);
        dir_150[90] = '/';
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_large_size),
                cmocka_unit_test(test_bad_headers),  cmocka_unit_test(test_pax_records),
                cmocka_unit_test(test_cut_archives), cmocka_unit_test(test_gnu_tar_to_us),
                cmocka_unit_test(test_us_to_others),
        };

        return cmocka_run_group_tests(tests, set_names, NULL);
}
