/* Terrace's interface for C programs beyond LevelDB's (leveldb/c.h). Objects are LevelDB's, and its
 * conventions hold: a database may be used by any number of threads at once, everything else by
 * one at a time; errptr is null, or leads to null or to a string from malloc, which an error
 * replaces; a null pointer for an object is tolerated; a null key or value with a length is an
 * error, also where one may be left out. Memory that is said to be the caller's is freed by
 * leveldb_free.
 *
 * Programs that need only leveldb/c.h run on either library. Those that call these functions need
 * this one. */
#ifndef TERRACE_INCLUDE_C_H_
#define TERRACE_INCLUDE_C_H_

#include <stddef.h>
#include <stdint.h>

#include "leveldb/c.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct terrace_memory_budget_t terrace_memory_budget_t;
typedef struct terrace_pinned_t terrace_pinned_t;
typedef struct terrace_report_t terrace_report_t;
typedef struct terrace_transaction_t terrace_transaction_t;

/* Terrace's version, as in "0.1.0". Stays for ever. */
LEVELDB_EXPORT const char* terrace_version(void);

/* The last error on this thread in a function of this API or of leveldb/c.h, those without errptr
 * included; empty if there was none. Valid until the next call on this thread that fails. */
LEVELDB_EXPORT const char* terrace_last_error(void);

/* ---- Opening and closing ---- */

/* Open without changing a byte: writes fail, other readers may have the database open. */
LEVELDB_EXPORT void terrace_options_set_read_only(leveldb_options_t*, uint8_t);

/* Bits for each key in the filter that every table has besides LevelDB's: 0 for none, at most 32.
 * Default: 10. */
LEVELDB_EXPORT void terrace_options_set_table_filter_bits(leveldb_options_t*, int);

/* How tables are read. `auto`, the default, maps them, checks that each 64 KiB can be read before
 * its first load, and uses pread after the first read error and once the tables take more than half
 * of the available memory. `mapped` never checks: a sector that cannot be read kills the process
 * with SIGBUS, as in LevelDB. `pread` never maps: every such sector is an error, a load of a block
 * that is in memory costs about three times as much, and each open table a descriptor. Options that
 * do not say take it from the environment variable TERRACE_READ_ACCESS=auto|mapped|pread, which C++
 * programs set before they open a database. Other numbers count as auto. */
enum {
  terrace_read_access_auto = 0,
  terrace_read_access_mapped = 1,
  terrace_read_access_pread = 2
};
LEVELDB_EXPORT void terrace_options_set_read_access(leveldb_options_t*, int);

/* Whether writes are copied into a mapping of the log, which is prepared ahead with zeros, on ext4
 * and tmpfs (1, the default), or written by a system call each, at the end of the file, as LevelDB
 * does (0). Both lose nothing when the process is killed, at the next open by any library. Written
 * logs are for copies of the directory that programs make which know nothing of zeros. Options that
 * do not say take it from the environment variable TERRACE_MAPPED_LOG=0|1, which C++ programs set
 * before they open a database. */
LEVELDB_EXPORT void terrace_options_set_mapped_log(leveldb_options_t*, uint8_t);

/* Keeps values of at least this many bytes in value files (NNNNNN.vlog) instead of tables, which
 * then hold pointers to them, so that compactions do not copy such values again and again; 0, the
 * default, keeps values in tables. The first value file makes the database extended: LevelDB
 * refuses to open it. A compaction of everything without this option brings the values back into
 * tables, `terrace convert --to plain` does. Options that do not say take it from the environment
 * variable TERRACE_VALUE_LOG, if it is set: bytes, or a number with K, M or G behind it. More than
 * 4 GiB - 1 fails the open. */
LEVELDB_EXPORT void terrace_options_set_value_log(leveldb_options_t*, size_t bytes);

/* How new tables are compressed: "none", "snappy", "lz4" or "zstd". The first table with one of the
 * latter two makes the database extended, as a value file does. "zstd" fails the open where this
 * library was built without it. The later of this and leveldb_options_set_compression counts.
 * Returns 1, or 0, and nothing has changed, if the name is unknown or null. */
LEVELDB_EXPORT uint8_t terrace_options_set_compression(leveldb_options_t*, const char* name);

/* Bytes of a table's zstd dictionary at most, from 2 KiB to 256 KiB, or 0, the default, for none.
 * Only tables with zstd and nothing below them have one, and only if it saves more than it takes.
 * Other sizes fail the open. */
LEVELDB_EXPORT void terrace_options_set_zstd_dictionary(leveldb_options_t*, size_t bytes);

/* One bound, in bytes, for the memory of all databases that are opened with it: memtables, indexes
 * and filters of open tables, cached blocks and those that readers hold. Writers wait before it is
 * exceeded, reads never. An eighth of it bounds a memtable, and databases without a cache of their
 * own share one within it. 256 KiB for each database is the least that makes sense. The budget may
 * be destroyed while databases have it. Options that have none (null) take that of the environment
 * variable TERRACE_MEMORY_BUDGET, if it is set: bytes, or a number with K, M or G behind it, one
 * budget for the process; 0 is the smallest one, not none. A budget from before a fork fails the
 * open. */
LEVELDB_EXPORT terrace_memory_budget_t* terrace_memory_budget_create(size_t bytes);
LEVELDB_EXPORT void terrace_memory_budget_destroy(terrace_memory_budget_t*);
LEVELDB_EXPORT size_t terrace_memory_budget_used(const terrace_memory_budget_t*);
LEVELDB_EXPORT void terrace_options_set_memory_budget(leveldb_options_t*,
                                                      const terrace_memory_budget_t*);

/* A logger for leveldb_options_set_info_log, which must outlive the database. `log` is called from
 * any thread, for one line at a time, which does not end in a zero; `destructor` may be null. */
LEVELDB_EXPORT leveldb_logger_t* terrace_logger_create(void* state, void (*destructor)(void*),
                                                       void (*log)(void* state, const char* line,
                                                                   size_t length));
LEVELDB_EXPORT void terrace_logger_destroy(leveldb_logger_t*);

/* leveldb_close, and says what went wrong. The database is closed in any case. */
LEVELDB_EXPORT void terrace_close(leveldb_t* db, char** errptr);

/* ---- Reading ---- */

/* Moves to the last entry whose key is at or before `key`. */
LEVELDB_EXPORT void terrace_iter_seek_for_prev(leveldb_iterator_t*, const char* key, size_t keylen);

/* Looks `count` keys up, all as of one moment. `values` and `value_lengths` have room for as many
 * results: the caller's memory, or null where there is no value. `value_lengths` may be the array
 * `key_lengths`. After an error every result is null. */
LEVELDB_EXPORT void terrace_multi_get(leveldb_t* db, const leveldb_readoptions_t* options,
                                      size_t count, const char* const* keys,
                                      const size_t* key_lengths, char** values,
                                      size_t* value_lengths, char** errptr);

/* The value of a key where it lies in memory, or null if there is none. It keeps alive what it
 * points into: hold it briefly, and destroy it before the database is closed. */
LEVELDB_EXPORT terrace_pinned_t* terrace_get_pinned(leveldb_t* db,
                                                    const leveldb_readoptions_t* options,
                                                    const char* key, size_t keylen, char** errptr);
LEVELDB_EXPORT const char* terrace_pinned_value(const terrace_pinned_t*, size_t* length);
LEVELDB_EXPORT void terrace_pinned_destroy(terrace_pinned_t*);

/* ---- Writing ---- */

/* Removes every key from `start_key` on and before `limit_key`, as one step; a null end is open. A
 * large range costs about as much as a small one: its tables are removed, durably whatever the
 * options say, and their space is free once nothing that began before reads them. Entries of
 * Terrace's own, whose keys begin with !$terrace!, stay, unless start_key begins with that. */
LEVELDB_EXPORT void terrace_delete_range(leveldb_t* db, const leveldb_writeoptions_t* options,
                                         const char* start_key, size_t start_key_len,
                                         const char* limit_key, size_t limit_key_len,
                                         char** errptr);

/* ---- Atomic updates: each is one commit, and loses nothing that others write ---- */

/* Sets the key to `new_value` if its value is `expected`, and returns whether it was. Null stands
 * for no value: for a key that is absent, and for its removal. */
LEVELDB_EXPORT uint8_t terrace_compare_and_swap(leveldb_t* db,
                                                const leveldb_writeoptions_t* options,
                                                const char* key, size_t keylen,
                                                const char* expected, size_t expected_length,
                                                const char* new_value, size_t new_length,
                                                char** errptr);

/* Sets the key if it has no value, and returns whether it had none. */
LEVELDB_EXPORT uint8_t terrace_insert_if_absent(leveldb_t* db,
                                                const leveldb_writeoptions_t* options,
                                                const char* key, size_t keylen, const char* val,
                                                size_t vallen, char** errptr);

/* Sets the key to what `change` makes of its value: null on either side stands for no value, and
 * what is returned is memory from malloc, which is freed. Null with a length other than 0 is an
 * error, and the value stays. `change` is called again if others write the key in between, from the
 * eighth time on with the key locked: it writes nothing itself. */
LEVELDB_EXPORT void terrace_update(leveldb_t* db, const leveldb_writeoptions_t* options,
                                   const char* key, size_t keylen, void* state,
                                   char* (*change)(void* state, const char* value, size_t length,
                                                   size_t* new_length),
                                   char** errptr);

/* Adds to a counter, a value of eight bytes, little-endian and signed, and returns the sum; no
 * value counts as 0. */
LEVELDB_EXPORT int64_t terrace_increment(leveldb_t* db, const leveldb_writeoptions_t* options,
                                         const char* key, size_t keylen, int64_t by, char** errptr);

/* Deletes the first or the last entry from `start_key` on and before `limit_key`, where a null end
 * is open, and returns 1 and the entry in memory that is the caller's; 0 if there is none. Of any
 * number of callers each gets another entry. After an error of a sync the entry may be deleted, as
 * after any write. */
LEVELDB_EXPORT uint8_t terrace_pop_first(leveldb_t* db, const leveldb_writeoptions_t* options,
                                         const char* start_key, size_t start_key_len,
                                         const char* limit_key, size_t limit_key_len, char** key,
                                         size_t* keylen, char** val, size_t* vallen, char** errptr);
LEVELDB_EXPORT uint8_t terrace_pop_last(leveldb_t* db, const leveldb_writeoptions_t* options,
                                        const char* start_key, size_t start_key_len,
                                        const char* limit_key, size_t limit_key_len, char** key,
                                        size_t* keylen, char** val, size_t* vallen, char** errptr);

/* ---- Transactions ---- */

/* A transaction reads the database as it was when it began, with its own writes on top, which
 * others see when it is committed. `flags` are 0 or a sum: serializable ones are refused if
 * anything that they have read, ranges and absent keys included, was written since; locking ones
 * lock what they read for update until they end, so that every other writer waits. Others are
 * refused if a key that they write or have read for update was written since. A lock is waited for
 * at most `lock_timeout_micros`; 0 stands for a second. Destroy a transaction before the database
 * is closed. */
enum { terrace_transaction_serializable = 1, terrace_transaction_locking = 2 };
LEVELDB_EXPORT terrace_transaction_t* terrace_transaction_begin(leveldb_t* db, int flags,
                                                                uint64_t lock_timeout_micros,
                                                                char** errptr);
LEVELDB_EXPORT void terrace_transaction_destroy(terrace_transaction_t*);

/* The value of a key, in memory that is the caller's; null if there is none. */
LEVELDB_EXPORT char* terrace_transaction_get(terrace_transaction_t*, const char* key, size_t keylen,
                                             size_t* vallen, char** errptr);
LEVELDB_EXPORT char* terrace_transaction_get_for_update(terrace_transaction_t*, const char* key,
                                                        size_t keylen, size_t* vallen,
                                                        char** errptr);

/* Hands the entries from `start_key` on and before `limit_key` to `visit`, in order, until that
 * returns 0; a null end is open. `visit` must not use the transaction. */
LEVELDB_EXPORT void terrace_transaction_scan(
    terrace_transaction_t*, const char* start_key, size_t start_key_len, const char* limit_key,
    size_t limit_key_len, void* state,
    uint8_t (*visit)(void* state, const char* key, size_t keylen, const char* val, size_t vallen),
    char** errptr);

LEVELDB_EXPORT void terrace_transaction_put(terrace_transaction_t*, const char* key, size_t keylen,
                                            const char* val, size_t vallen, char** errptr);
LEVELDB_EXPORT void terrace_transaction_delete(terrace_transaction_t*, const char* key,
                                               size_t keylen, char** errptr);

/* Savepoints may be set one behind the other; going back to the last one undoes what was written
 * since, and forgets it. */
LEVELDB_EXPORT void terrace_transaction_set_savepoint(terrace_transaction_t*, char** errptr);
LEVELDB_EXPORT void terrace_transaction_rollback_to_savepoint(terrace_transaction_t*,
                                                              char** errptr);

/* Applies all writes at once: 0. Otherwise errptr says why: 1 if the transaction has to be run again
 * from its beginning, because of what others have written or in a deadlock, and nothing has
 * happened; 2 for anything else. After an I/O error, as of a sync, all of its writes may be there,
 * or none. The transaction has ended in any case, and is only good for being destroyed. */
LEVELDB_EXPORT int terrace_transaction_commit(terrace_transaction_t*,
                                              const leveldb_writeoptions_t* options, char** errptr);

/* ---- Commit in two phases ---- */

/* Whether transactions of databases that are opened with these options may be prepared. The open
 * finds those that were prepared before and not decided, and locks their keys again. */
LEVELDB_EXPORT void terrace_options_set_prepared_transactions(leveldb_options_t*, uint8_t);

/* Makes the writes of a transaction durable without doing them, and keeps its keys locked until it
 * is committed or rolled back under `name`, of at most 1,024 bytes, after the end of the process
 * too. Not for serializable transactions. Returns what terrace_transaction_commit returns. The
 * transaction is as it was before if 2 is returned because it cannot be prepared so: its name is in
 * use or too long, options or comparator do not allow it, it is serializable, writes keys of
 * prepared transactions, or is too large. It has ended in any other case, and its functions say so,
 * but after an I/O error it may be among the prepared ones all the same. */
LEVELDB_EXPORT int terrace_transaction_prepare(terrace_transaction_t*, const char* name,
                                               size_t namelen, char** errptr);

/* Hands the prepared transactions that are not decided to `visit`, in the order of their names,
 * until that returns 0: with the number of keys that they write, and whether they are overtaken,
 * which is to say that a program without locks, such as one with LevelDB, has written one of their
 * keys. An error if the database was opened without the option. */
LEVELDB_EXPORT void terrace_prepared_list(leveldb_t* db, void* state,
                                          uint8_t (*visit)(void* state, const char* name,
                                                           size_t namelen, size_t writes,
                                                           uint8_t overtaken),
                                          char** errptr);

/* Commits the transaction that was prepared as `name`, or rolls it back, durably, and returns 1; 0
 * if there is none, without an error. After an error the call can be repeated. One that is
 * overtaken can only be rolled back. */
LEVELDB_EXPORT uint8_t terrace_prepared_commit(leveldb_t* db, const char* name, size_t namelen,
                                               char** errptr);
LEVELDB_EXPORT uint8_t terrace_prepared_rollback(leveldb_t* db, const char* name, size_t namelen,
                                                 char** errptr);

/* ---- Maintenance ---- */

/* Writes what is in memory to tables. */
LEVELDB_EXPORT void terrace_flush(leveldb_t* db, char** errptr);

/* leveldb_compact_range, and says what went wrong. */
LEVELDB_EXPORT void terrace_compact_range(leveldb_t* db, const char* start_key,
                                          size_t start_key_len, const char* limit_key,
                                          size_t limit_key_len, char** errptr);

/* Makes a copy of the database in the directory `name`, which must be absent or empty, while it is
 * in use: a database of its own with all that was written before the call, durable on return.
 * Tables are shared by hard links where the file system allows it. After an error there is nothing.
 */
LEVELDB_EXPORT void terrace_checkpoint(leveldb_t* db, const char* name, char** errptr);

/* Waits until no flush or compaction is due or running. */
LEVELDB_EXPORT void terrace_wait_idle(leveldb_t* db, char** errptr);

/* Every statistic, as a JSON object; the caller's memory. */
LEVELDB_EXPORT char* terrace_stats_json(leveldb_t* db);

/* One number of it by its name, for example "sequence" or "cache_hits". Returns 0 if there is no
 * such number. */
LEVELDB_EXPORT uint8_t terrace_stat(leveldb_t* db, const char* name, uint64_t* value);

/* Checks every file: of an open database, or of one that is not open for writing. Damage is in the
 * report; an error is what keeps the check from being done, and the result is null then. */
LEVELDB_EXPORT terrace_report_t* terrace_verify(leveldb_t* db, char** errptr);
LEVELDB_EXPORT terrace_report_t* terrace_verify_db(const leveldb_options_t*, const char* name,
                                                   char** errptr);

/* leveldb_repair_db, and says what it found and did. */
LEVELDB_EXPORT terrace_report_t* terrace_repair_db(const leveldb_options_t*, const char* name,
                                                   char** errptr);

/* How many problems there are, and each of them as "file: what is wrong", null beyond the last.
 * Strings live as long as the report. */
LEVELDB_EXPORT size_t terrace_report_problems(const terrace_report_t*);
LEVELDB_EXPORT const char* terrace_report_problem(const terrace_report_t*, size_t index);

/* All that the report says, as a JSON object; the caller's memory. */
LEVELDB_EXPORT char* terrace_report_json(const terrace_report_t*);
LEVELDB_EXPORT void terrace_report_destroy(terrace_report_t*);

/* ---- Keyspaces ---- */

/* A keyspace is a named set of keys in a database: to leveldb/c.h its keys begin with `!name!`, as
 * those of a sublevel of abstract-level do. A handle may be used by any number of threads at once.
 * It is released by terrace_keyspace_release, before or after the database is closed. */
typedef struct terrace_keyspace_t terrace_keyspace_t;
typedef struct terrace_keyspace_options_t terrace_keyspace_options_t;

/* What a keyspace is created with, and what is stored in the database; what is not set is as in the
 * leveldb_options_t of the database. */
LEVELDB_EXPORT terrace_keyspace_options_t* terrace_keyspace_options_create(void);
LEVELDB_EXPORT void terrace_keyspace_options_destroy(terrace_keyspace_options_t*);

/* Whether entries may have a time to live, and that of entries that are put without one, in
 * milliseconds: 0 for none. What has expired is there for no read of a keyspace or a transaction,
 * and compactions remove it. To leveldb/c.h values that expire end with a trailer of 16 bytes, and
 * are there until they are removed. */
LEVELDB_EXPORT void terrace_keyspace_options_set_expiry(terrace_keyspace_options_t*, uint8_t expiry,
                                                        uint64_t default_ttl_millis);

/* leveldb_no_compression or leveldb_snappy_compression. */
LEVELDB_EXPORT void terrace_keyspace_options_set_compression(terrace_keyspace_options_t*, int);

/* Bytes of a block before compression: 1 KiB to 4 MiB. */
LEVELDB_EXPORT void terrace_keyspace_options_set_block_size(terrace_keyspace_options_t*, size_t);

/* See terrace_options_set_table_filter_bits. A table has the most bits that any of its keys asks
 * for. */
LEVELDB_EXPORT void terrace_keyspace_options_set_filter_bits(terrace_keyspace_options_t*, int);

/* Makes the keyspace `name`, durably, within another one or, with a null `parent`, in the database.
 * A name has 1 to 255 bytes of ASCII from # to ~. An error if there is one, be it by its keys
 * alone. Null options are the default. */
LEVELDB_EXPORT terrace_keyspace_t* terrace_keyspace_create(
    leveldb_t* db, const terrace_keyspace_t* parent, const char* name,
    const terrace_keyspace_options_t* options, char** errptr);

/* The keyspace `name`, which must be there; an error also if `options` are not null and it was
 * created with others. */
LEVELDB_EXPORT terrace_keyspace_t* terrace_keyspace_open(leveldb_t* db,
                                                         const terrace_keyspace_t* parent,
                                                         const char* name,
                                                         const terrace_keyspace_options_t* options,
                                                         char** errptr);
LEVELDB_EXPORT void terrace_keyspace_release(terrace_keyspace_t*);

/* Removes the keyspace `name` with its entries and the keyspaces within it, as one step and
 * durably. Handles of it fail from then on. Returns whether there was one. */
LEVELDB_EXPORT uint8_t terrace_keyspace_drop(leveldb_t* db, const terrace_keyspace_t* parent,
                                             const char* name, char** errptr);

/* The names of all keyspaces right within `parent` or in the database, each followed by a newline:
 * the caller's memory. */
LEVELDB_EXPORT char* terrace_keyspace_list(leveldb_t* db, const terrace_keyspace_t* parent,
                                           char** errptr);

/* The time to live of an entry, in milliseconds: that of the keyspace, or none. */
#define terrace_ttl_default ((uint64_t)0)
#define terrace_ttl_never (~(uint64_t)0)

/* leveldb_put and its kind with keys of a keyspace. A time to live is an error in a keyspace
 * without expiry. */
LEVELDB_EXPORT void terrace_keyspace_put(const terrace_keyspace_t*, const leveldb_writeoptions_t*,
                                         const char* key, size_t keylen, const char* val,
                                         size_t vallen, uint64_t ttl_millis, char** errptr);
LEVELDB_EXPORT void terrace_keyspace_delete(const terrace_keyspace_t*,
                                            const leveldb_writeoptions_t*, const char* key,
                                            size_t keylen, char** errptr);
LEVELDB_EXPORT char* terrace_keyspace_get(const terrace_keyspace_t*, const leveldb_readoptions_t*,
                                          const char* key, size_t keylen, size_t* vallen,
                                          char** errptr);

/* See terrace_delete_range; a null key is the beginning or the end of the keyspace. */
LEVELDB_EXPORT void terrace_keyspace_delete_range(
    const terrace_keyspace_t*, const leveldb_writeoptions_t*, const char* start_key,
    size_t start_key_len, const char* limit_key, size_t limit_key_len, char** errptr);

/* An iterator over the keys of a keyspace, with the functions of leveldb/c.h: leveldb_iter_seek and
 * so on, and leveldb_iter_destroy before the database is closed. */
LEVELDB_EXPORT leveldb_iterator_t* terrace_keyspace_create_iterator(const terrace_keyspace_t*,
                                                                    const leveldb_readoptions_t*);

/* An entry as leveldb/c.h has it, for batches and transactions that span keyspaces: the caller's
 * memory. Its time to live begins now. */
LEVELDB_EXPORT void terrace_keyspace_entry(const terrace_keyspace_t*, const char* key,
                                           size_t keylen, const char* val, size_t vallen,
                                           uint64_t ttl_millis, char** full_key,
                                           size_t* full_keylen, char** stored, size_t* stored_len,
                                           char** errptr);

/* ---- Compaction filters ---- */

/* Decides what compactions do with an entry, the newest of its key among theirs, if no snapshot
 * sees it. To replace its value a filter stores memory from malloc and its length, which the
 * library frees; null with a length other than 0 keeps the value. It is called from any thread that
 * compacts, several at once: the library's own, and those that call leveldb_compact_range and its
 * kind. It may be asked about an entry any number of times, or not for long. */
enum { terrace_filter_keep = 0, terrace_filter_remove = 1, terrace_filter_replace = 2 };
typedef int (*terrace_filter_t)(void* state, const char* key, size_t keylen, const char* value,
                                size_t vallen, char** new_value, size_t* new_length);

/* Has compactions of databases that are opened with these options ask a filter; none if it is null.
 * `destructor`, which may be null, is called once in any case: when the filter is needed no more,
 * after leveldb_close and leveldb_options_destroy, and at once if there is none or options are
 * null. */
LEVELDB_EXPORT void terrace_options_set_compaction_filter(leveldb_options_t*, void* state,
                                                          terrace_filter_t filter,
                                                          void (*destructor)(void*));

/* The same about the entries of one keyspace, in place of the database's filter, from now until the
 * database is closed or the keyspace dropped. It is asked about keys within the keyspace, and about
 * values without what follows them where they expire. `destructor` is called at once after an
 * error. */
LEVELDB_EXPORT void terrace_keyspace_set_compaction_filter(const terrace_keyspace_t*, void* state,
                                                           terrace_filter_t filter,
                                                           void (*destructor)(void*),
                                                           char** errptr);

#ifdef __cplusplus
}
#endif

#endif
