/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define PATH_SIZE 4096
#define RESERVE   "1572864" /* bytes */

void sqlite_file_closep(sqlite3 **db)
{
        (void) sqlite3_close(*db);
        *db = NULL;
}

/* --- errors --- */

/* SQLite reports ENOSPC as SQLITE_FULL, but a full quota as any failed write. A sync that fails for want of room is
 * different: it is unknown what was written. */
static bool is_full(sqlite3 *db, int rc)
{
        static const int files[] = { SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER };

        if ((rc & 0xff) == SQLITE_FULL)
                return true;
        /* The last errno of the file or its log. sqlite3_system_errno would be the obvious way, but is 0 when a commit
         * has failed. */
        for (size_t i = 0; i < ARRAY_SIZE(files) && rc == SQLITE_IOERR_WRITE; i++) {
                sqlite3_file *file = NULL;
                int os = 0;

                if (sqlite3_file_control(db, "main", files[i], &file) == SQLITE_OK && file
                    && file->pMethods)
                        (void) file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &os);
                if (os == ENOSPC || os == EDQUOT || os == EFBIG)
                        return true;
        }
        return false;
}

int sqlite_file_error(sqlite3 *db, int rc, const char *what, struct err *e)
{
        static const struct {
                int rc;
                enum err_code code;
        } codes[] = {
                { SQLITE_NOMEM, ERR_EXHAUSTED },    { SQLITE_TOOBIG, ERR_TOO_LARGE },
                { SQLITE_BUSY, ERR_UNAVAILABLE },   { SQLITE_LOCKED, ERR_UNAVAILABLE },
                { SQLITE_IOERR, ERR_UNAVAILABLE },  { SQLITE_CANTOPEN, ERR_UNAVAILABLE },
                { SQLITE_READONLY, ERR_FORBIDDEN }, { SQLITE_PERM, ERR_FORBIDDEN },
        };
        enum err_code code = ERR_INTERNAL;

        if (is_full(db, rc))
                return err_set(e, ERR_EXHAUSTED, "%s: the disk of '%s' is full", what,
                               sqlite3_db_filename(db, "main"));
        for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
                if (codes[i].rc == (rc & 0xff))
                        code = codes[i].code;
        return err_set(e, code, "%s: %s (SQLite %d)", what, sqlite3_errstr(rc), rc);
}

/* Opening has more specific messages. */
static int explain_open(sqlite3 *db, const char *path, struct err *e, int rc)
{
        switch (rc & 0xff) {
        case SQLITE_BUSY:
                return err_set(e, ERR_CONFLICT,
                               "'%s' is in use by another process: a store belongs to one hutchd "
                               "at a time; stop the other one or use another directory",
                               path);
        case SQLITE_NOTADB:
        case SQLITE_CORRUPT:
                return err_set(e, ERR_INTERNAL,
                               "'%s' is damaged (%s) and was left as it is: restore it from a "
                               "backup, or move it and '%s-wal' away to begin with an empty store",
                               path, sqlite3_errstr(rc), path);
        default:
                return sqlite_file_error(db, rc, path, e);
        }
}

/* --- statements --- */

static int execute(sqlite3 *db, const char *sql, const char *what, struct err *e)
{
        int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

        return rc == SQLITE_OK ? 0 : sqlite_file_error(db, rc, what, e);
}

/* Returns SQLite's own code. */
static int number(sqlite3 *db, const char *sql, int64_t *ret)
{
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

        if (rc != SQLITE_OK)
                return rc;
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW || rc == SQLITE_DONE)
                *ret = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
        return sqlite3_finalize(stmt);
}

int sqlite_file_number(sqlite3 *db, const char *sql, int64_t *ret, struct err *e)
{
        int rc = number(db, sql, ret);

        return rc == SQLITE_OK ? 0 : sqlite_file_error(db, rc, "read the state of the file", e);
}

/* --- the file --- */

/* SQLite would make it world-readable; its other files take over the mode of this one. */
static int create(const char *path, struct err *e)
{
        char directory[PATH_SIZE];
        const char *slash = strrchr(path, '/');
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), r;

        if (fd < 0 && errno == ENOENT)
                return err_set(e, ERR_NOT_FOUND, "the directory of '%s' does not exist; create it",
                               path);
        if (fd < 0)
                return err_errno(e, -errno, "create '%s'", path);
        (void) close(fd);
        (void) snprintf(directory, sizeof(directory), "%.*s", (int) (slash - path + 1), path);
        fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return err_errno(e, -errno, "open the directory '%s'", directory);
        r = fsync(fd) < 0 ? -errno : 0;
        (void) close(fd);
        return r < 0 ? err_errno(e, r, "sync the directory '%s'", directory) : 0;
}

/* An existing file must not be opened and closed here: closing any descriptor of a file releases all POSIX locks that this
 * process has on it, SQLite's too. */
static int find_or_create(const char *path, struct err *e)
{
        struct stat st;

        if (lstat(path, &st) < 0) {
                if (errno == ENOENT)
                        return create(path, e);
                return err_errno(e, -errno, "check '%s'", path);
        }
        if (!S_ISREG(st.st_mode))
                return err_set(e, ERR_INVALID, "'%s' is not a file", path);
        if (st.st_mode & 077)
                return err_set(e, ERR_FORBIDDEN,
                               "other users can access '%s' (mode %04o); chmod 600 it", path,
                               (unsigned) st.st_mode & 07777);
        return 0;
}

/* --- opening --- */

static int quick_check(sqlite3 *db, const char *path, struct err *e)
{
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &stmt, NULL), r = 0;
        const char *text;

        if (rc == SQLITE_OK)
                rc = sqlite3_step(stmt);
        text = rc == SQLITE_ROW ? (const char *) sqlite3_column_text(stmt, 0) : NULL;
        if (rc != SQLITE_ROW)
                r = explain_open(db, path, e, rc == SQLITE_DONE ? SQLITE_CORRUPT : rc);
        else if (!text || strcmp(text, "ok") != 0)
                r = explain_open(db, path, e, SQLITE_CORRUPT);
        (void) sqlite3_finalize(stmt);
        return r;
}

/* *ret_version: of the schema, 0 for an empty file. */
static int examine(sqlite3 *db, const char *path, const struct sqlite_schema *schema,
                   int64_t *ret_version, struct err *e)
{
        int64_t id = 0, tables = 0;
        int rc = number(db, "PRAGMA application_id", &id), r;

        if (rc == SQLITE_OK)
                rc = number(db, "SELECT count(*) FROM sqlite_schema", &tables);
        if (rc != SQLITE_OK)
                return explain_open(db, path, e, rc);
        *ret_version = 0;
        if (id == 0 && tables == 0)
                return 0;
        if (id != schema->application_id)
                return err_set(e, ERR_INVALID, "'%s' is a database of another program", path);
        r = quick_check(db, path, e);
        if (r < 0)
                return r;
        rc = number(db, "SELECT value FROM meta WHERE name = 'schema'", ret_version);
        if (rc != SQLITE_OK)
                return explain_open(db, path, e, rc);
        if (*ret_version < 1)
                return explain_open(db, path, e, SQLITE_CORRUPT);
        if (*ret_version > schema->n)
                return err_set(e, ERR_UNSUPPORTED,
                               "'%s' was written by a newer Hutch (schema %" PRId64
                               ", this one knows up to %d): install that one again, or restore a "
                               "backup from before",
                               path, *ret_version, schema->n);
        return 0;
}

/* All steps in one transaction: a crash leaves the old file or the new one. */
static int migrate(sqlite3 *db, const struct sqlite_schema *schema, int64_t from, struct err *e)
{
        char sql[160];
        int r;

        if (from == schema->n)
                return 0;
        r = execute(db, "BEGIN IMMEDIATE", "begin to change the schema", e);
        if (r == 0 && from == 0) {
                (void) snprintf(sql, sizeof(sql),
                                "PRAGMA application_id = %d;"
                                "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL)"
                                " STRICT, WITHOUT ROWID",
                                schema->application_id);
                r = execute(db, sql, "create the first table", e);
        }
        for (int64_t i = from; r == 0 && i < schema->n; i++)
                r = execute(db, schema->steps[i], "change the schema", e);
        (void) snprintf(sql, sizeof(sql),
                        "INSERT INTO meta VALUES ('schema', %d)"
                        " ON CONFLICT DO UPDATE SET value = excluded.value",
                        schema->n);
        if (r == 0)
                r = execute(db, sql, "note the schema", e);
        if (r == 0)
                r = execute(db, "COMMIT", "commit the schema", e);
        if (r < 0 && !sqlite3_get_autocommit(db))
                (void) sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        return r;
}

/* None of these reads or writes the file. */
static const char settings[] = "PRAGMA locking_mode = EXCLUSIVE;"
                               "PRAGMA cell_size_check = ON;"
                               "PRAGMA temp_store = MEMORY;"
                               "PRAGMA cache_size = -16384;" /* KiB */
                               "PRAGMA journal_size_limit = 16777216";

/* Reserves room for writes on a full disk, so that a sandbox that has filled it can still be deleted. What is written and
 * dropped again leaves free pages in the file and, because the log restarts and keeps its size, room in the log: more than is
 * written between two checkpoints. If there is no room for that now, the next start reserves it. */
static void reserve(sqlite3 *db)
{
        static const char sql[] = "BEGIN IMMEDIATE;"
                                  "CREATE TABLE reserve (room BLOB);"
                                  "INSERT INTO reserve VALUES (zeroblob(" RESERVE "));"
                                  "DROP TABLE reserve;"
                                  "COMMIT";

        if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
                (void) sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        (void) sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
}

/* Settings and checks come before the first change. */
static int take_over(sqlite3 *db, const char *path, const struct sqlite_schema *schema,
                     struct err *e)
{
        int64_t version = 0;
        int rc = sqlite3_exec(db, settings, NULL, NULL, NULL), r;

        if (rc != SQLITE_OK)
                return explain_open(db, path, e, rc);
        r = examine(db, path, schema, &version, e);
        if (r < 0)
                return r;
        rc = sqlite3_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", NULL, NULL,
                          NULL);
        if (rc != SQLITE_OK)
                return explain_open(db, path, e, rc);
        r = migrate(db, schema, version, e);
        if (r == 0)
                reserve(db);
        return r;
}

int sqlite_file_open(const char *path, const struct sqlite_schema *schema, sqlite3 **ret,
                     struct err *e)
{
        const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE
                          | SQLITE_OPEN_EXRESCODE;
        scoped(sqlite_file_closep) sqlite3 *db = NULL;
        char name[PATH_SIZE], log[PATH_SIZE + sizeof("-wal")];
        struct stat st;
        int rc, r;

        /* SQLite interprets names like ":memory:" and "file:x". */
        r = snprintf(name, sizeof(name), "%s%s", path[0] == '/' ? "" : "./", path);
        if (r < 0 || (size_t) r >= sizeof(name))
                return err_set(e, ERR_INVALID, "the path of the store is too long");
        r = find_or_create(name, e);
        if (r < 0)
                return r;
        rc = sqlite3_open_v2(name, &db, flags, NULL);
        if (rc != SQLITE_OK)
                return explain_open(db, path, e, rc);
        /* Closing writes the log into the file, unless this is off: it is, until the file was checked. */
        (void) sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        (void) sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        (void) sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        (void) sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
        (void) sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
        r = take_over(db, path, schema, e);
        if (r < 0) {
                /* Opening has created a log beside the file; an empty one is removed. Not if the file is in use: then the
                 * log belongs to the other process. */
                (void) snprintf(log, sizeof(log), "%s-wal", name);
                if (r != ERR_RETURN(ERR_CONFLICT) && lstat(log, &st) == 0 && st.st_size == 0)
                        (void) unlink(log);
                return r;
        }
        (void) sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
        *ret = TAKE_PTR(db);
        return 0;
}
