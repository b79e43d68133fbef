/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "base/base.h"
#include "store/sqlite_file.h"
#include "store/store_impl.h"

/*
 * Group commit: all requests of an iteration are one transaction. They run in the order they were started, the commit waits
 * for the disk once, and only then is any of them finished. Gets and scans are part of it, because they may have seen what is
 * not committed yet. If the commit fails, all writes of the transaction fail, and reads run again.
 *
 * A transaction holds up the loop, so a long queue is split into several, and others run in between.
 *
 * The last version given to any key is a number in the file, written with each transaction: no version is given twice, not
 * after a removal or a crash either.
 *
 * The write-ahead log is written back to the file (a checkpoint) when it has grown to CHECKPOINT_PAGES, in a task of its own
 * after the requests are done.
 */

/* Short enough for the loop: with a disk sync of 0.2 ms an iteration takes some milliseconds. */
#define BATCH_USEC       (USEC_PER_MSEC / 2) /* of running statements; the commit comes on top */
#define BATCH_BYTES      (1 * MiB)           /* of values: one of the largest */
#define CHECKPOINT_PAGES 250                 /* of 4 KiB */

/* 'Hutc' */
#define APPLICATION_ID 0x48757463

static const char *const steps[] = {
        /* 1. Not WITHOUT ROWID: values are large, and would be in the inner nodes of the tree. */
        "CREATE TABLE entry (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
        " version INTEGER NOT NULL, value BLOB NOT NULL) STRICT;"
        "INSERT INTO meta VALUES ('version', 0)",
};

static const struct sqlite_schema schema = {
        .application_id = APPLICATION_ID,
        .steps = steps,
        .n = ARRAY_SIZE(steps),
};

enum statement {
        BEGIN,
        COMMIT,
        ROLLBACK,
        GET,
        PUT,
        CREATE,
        UPDATE,
        REMOVE,
        REMOVE_EXPECTED,
        SCAN_FROM,
        SCAN_AFTER,
        SET_VERSION,
        STATEMENT_MAX_,
};

#define INSERT "INSERT INTO entry (key, version, value) VALUES (?1, ?2, ?3) ON CONFLICT (key)"

static const char *const statement_texts[] = {
        [BEGIN] = "BEGIN",
        [COMMIT] = "COMMIT",
        [ROLLBACK] = "ROLLBACK",
        [GET] = "SELECT version, value FROM entry WHERE key = ?1",
        [PUT] = (INSERT " DO UPDATE SET version = ?2, value = ?3"),
        [CREATE] = (INSERT " DO NOTHING"),
        [UPDATE] = "UPDATE entry SET version = ?2, value = ?3 WHERE key = ?1 AND version = ?4",
        [REMOVE] = "DELETE FROM entry WHERE key = ?1",
        [REMOVE_EXPECTED] = "DELETE FROM entry WHERE key = ?1 AND version = ?4",
        [SCAN_FROM] = "SELECT version, value, key FROM entry WHERE key >= ?1 ORDER BY key",
        [SCAN_AFTER] = "SELECT version, value, key FROM entry WHERE key > ?1 ORDER BY key",
        [SET_VERSION] = "UPDATE meta SET value = ?2 WHERE name = 'version'",
};
static_assert(ARRAY_SIZE(statement_texts) == STATEMENT_MAX_, "statement_texts out of step");

struct sqlite {
        struct store store;
        sqlite3 *db;
        sqlite3_stmt *statements[STATEMENT_MAX_];
        uint64_t version;        /* the last one given */
        uint64_t version_stored; /* the same in the file */

        struct list batch;    /* requests of the transaction */
        bool batch_failed;    /* it can't be committed */
        struct err batch_err; /* the reason */

        int log_pages;
        int checkpoint_at;
        struct net_task checkpoint;
};

/* --- statements --- */

static void bind_blob(sqlite3_stmt *st, int at, struct str s)
{
        /* A NULL pointer would bind SQL NULL instead of an empty blob. */
        (void) sqlite3_bind_blob64(st, at, s.n ? s.p : "", s.n, SQLITE_STATIC);
}

static struct str column_blob(sqlite3_stmt *st, int at)
{
        const char *p = sqlite3_column_blob(st, at); /* NULL if there are no bytes */

        return str_of(p ? p : "", (size_t) sqlite3_column_bytes(st, at));
}

static int fail_batch(struct sqlite *q, int rc, const char *what)
{
        if (!q->batch_failed)
                (void) sqlite_file_error(q->db, rc, what, &q->batch_err);
        q->batch_failed = true;
        return ERR_RETURN(q->batch_err.code);
}

/* Runs a statement that returns no rows. */
static int run(struct sqlite *q, enum statement which, const char *what)
{
        int rc = sqlite3_step(q->statements[which]);
        int r = rc == SQLITE_DONE ? 0 : fail_batch(q, rc, what);

        (void) sqlite3_reset(q->statements[which]);
        return r;
}

/* --- the calls, inside of a transaction --- */

static int call_write(struct sqlite *q, struct store_req *req)
{
        uint64_t version = q->version + 1, expected = 0;
        enum statement which = PUT;
        sqlite3_stmt *st;
        int r;

        if (req->_call == STORE_CALL_CAS) {
                expected = STORE_AS(cas, req)->expected;
                which = expected == STORE_ABSENT ? CREATE : UPDATE;
        } else if (req->_call == STORE_CALL_REMOVE) {
                expected = STORE_AS(remove, req)->expected;
                which = expected == STORE_ANY ? REMOVE : REMOVE_EXPECTED;
        }
        st = q->statements[which];
        bind_blob(st, 1, store_req_key(req));
        if (req->_call != STORE_CALL_REMOVE) {
                (void) sqlite3_bind_int64(st, 2, (sqlite3_int64) version);
                bind_blob(st, 3, store_req_value(req));
        }
        if (which == UPDATE || which == REMOVE_EXPECTED) {
                if (expected > INT64_MAX) /* above SQLite's integers: it was never given */
                        return store_fail_conflict(req);
                (void) sqlite3_bind_int64(st, 4, (sqlite3_int64) expected);
        }
        r = run(q, which,
                req->_call == STORE_CALL_REMOVE ? "remove from the store" : "write to the store");
        if (r < 0)
                return r;
        if (which != REMOVE && sqlite3_changes(q->db) == 0)
                return store_fail_conflict(req);
        if (req->_call == STORE_CALL_REMOVE)
                return 0;
        q->version = version;
        if (req->_call == STORE_CALL_PUT)
                STORE_AS(put, req)->version = version;
        else
                STORE_AS(cas, req)->version = version;
        return 0;
}

static int call_read(struct sqlite *q, struct store_req *req)
{
        struct store_scan *sc = req->_call == STORE_CALL_SCAN ? STORE_AS(scan, req) : NULL;
        bool after = false;
        struct str first = sc ? store_scan_start(sc, &after) : store_req_key(req);
        sqlite3_stmt *st = q->statements[!sc ? GET : after ? SCAN_AFTER : SCAN_FROM];
        int rc, r;

        bind_blob(st, 1, first);
        while ((rc = sqlite3_step(st)) == SQLITE_ROW && sc) {
                struct store_entry entry = { .key = column_blob(st, 2) };

                if (!str_starts_with(entry.key, sc->prefix))
                        break;
                entry.version = (uint64_t) sqlite3_column_int64(st, 0);
                entry.value = column_blob(st, 1);
                if (!store_scan_add(sc, entry))
                        break;
        }
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
                r = sqlite_file_error(q->db, rc, sc ? "scan the store" : "read from the store",
                                      &req->err);
        else if (sc)
                r = store_scan_result(sc);
        else if (rc == SQLITE_ROW)
                r = store_get_set(STORE_AS(get, req), column_blob(st, 1),
                                  (uint64_t) sqlite3_column_int64(st, 0));
        else
                r = store_fail_not_found(req);
        (void) sqlite3_reset(st);
        return r;
}

/* --- a transaction --- */

/* Versions of a failed transaction are not reused: the log may still contain them after a crash. */
static void undo(struct sqlite *q)
{
        if (!sqlite3_get_autocommit(q->db)) {
                (void) sqlite3_step(q->statements[ROLLBACK]);
                (void) sqlite3_reset(q->statements[ROLLBACK]);
        }
        list_for_each (n, &q->batch) {
                struct store_req *req = container_of(n, struct store_req, _node);

                if (store_call_writes(req)) {
                        req->err = q->batch_err;
                        req->_result = ERR_RETURN(q->batch_err.code);
                } else {
                        store_result_reset(req);
                        req->_result = call_read(q, req);
                }
        }
        /* After a checkpoint the log is written from its beginning, where its disk space is allocated already. */
        q->checkpoint_at = 0;
}

static void sqlite_run(struct store *s)
{
        struct sqlite *q = container_of(s, struct sqlite, store);
        const struct clock *clock = s->loop->clock;
        size_t bytes = 0;
        struct store_req *req;
        usec_t end;
        bool begun;

        q->batch_failed = false;
        begun = run(q, BEGIN, "begin a transaction") == 0;
        end = usec_add(clock_mono(clock), BATCH_USEC);
        /* Without a transaction to run them in, all are taken, and undo() finishes them. */
        while ((!begun || (!q->batch_failed && bytes < BATCH_BYTES)) && (req = store_next(s))) {
                list_append(&q->batch, &req->_node);
                if (!begun)
                        continue;
                req->_result = store_call_writes(req) ? call_write(q, req) : call_read(q, req);
                bytes += store_call_writes(req) ? store_req_value(req).n : req->_out.n;
                if (clock_mono(clock) >= end)
                        break;
        }
        if (!q->batch_failed && q->version != q->version_stored) {
                (void) sqlite3_bind_int64(q->statements[SET_VERSION], 2,
                                          (sqlite3_int64) q->version);
                (void) run(q, SET_VERSION, "write to the store");
        }
        /* SQLite may have rolled it back by itself after a read that failed. */
        if (!q->batch_failed && sqlite3_get_autocommit(q->db))
                (void) fail_batch(q, SQLITE_IOERR, "commit to the store");
        if (!q->batch_failed && run(q, COMMIT, "commit to the store") == 0)
                q->version_stored = q->version;
        if (q->batch_failed)
                undo(q);
        list_for_each (n, &q->batch) {
                req = container_of(n, struct store_req, _node);
                list_remove(n);
                store_finish(req, req->_result);
        }
        store_again(s);
        if (q->log_pages >= q->checkpoint_at)
                net_task_queue(s->loop, &q->checkpoint);
}

/* --- the log --- */

static int note_log_pages(void *arg, sqlite3 *db, const char *name, int pages)
{
        struct sqlite *q = arg;

        q->log_pages = pages;
        return SQLITE_OK;
}

static void checkpoint(struct net_task *t)
{
        struct sqlite *q = container_of(t, struct sqlite, checkpoint);
        int pages = 0, carried = 0;
        int rc =
                sqlite3_wal_checkpoint_v2(q->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &carried);

        /* A failure does no harm except that the log grows: tried again when it has. */
        if (rc == SQLITE_OK && carried == pages)
                q->log_pages = 0;
        q->checkpoint_at = q->log_pages + CHECKPOINT_PAGES;
}

/* --- life cycle --- */

static void sqlite_free(struct store *s)
{
        struct sqlite *q = container_of(s, struct sqlite, store);

        net_task_cancel(&q->checkpoint);
        for (size_t i = 0; i < STATEMENT_MAX_; i++)
                (void) sqlite3_finalize(q->statements[i]);
        ASSERT(sqlite3_close(q->db) == SQLITE_OK);
        free(q);
}

static const struct store_ops store_sqlite = {
        .name = "sqlite",
        .run = sqlite_run,
        .free = sqlite_free,
};

int store_sqlite_open(struct net_loop *loop, const char *path, struct store **ret, struct err *e)
{
        struct sqlite *q = xnew(struct sqlite);
        int64_t version = 0;
        int rc, r;

        store_init(&q->store, &store_sqlite, loop);
        net_task_init(&q->checkpoint, checkpoint);
        list_init(&q->batch);
        q->checkpoint_at = CHECKPOINT_PAGES;
        r = sqlite_file_open(path, &schema, &q->db, e);
        for (size_t i = 0; r == 0 && i < STATEMENT_MAX_; i++) {
                rc = sqlite3_prepare_v3(q->db, statement_texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                        &q->statements[i], NULL);
                if (rc != SQLITE_OK)
                        r = sqlite_file_error(q->db, rc, "prepare a statement", e);
        }
        if (r == 0)
                r = sqlite_file_number(q->db, "SELECT value FROM meta WHERE name = 'version'",
                                       &version, e);
        if (r < 0) {
                sqlite_free(&q->store);
                return err_wrap(e, "open the store");
        }
        q->version = q->version_stored = (uint64_t) version;
        (void) sqlite3_wal_hook(q->db, note_log_pages, q);
        *ret = &q->store;
        return 0;
}
