/* What Terrace offers to C programs beyond LevelDB's API (leveldb/c.h). Objects are LevelDB's, and its conventions hold:
 * a database may be used by any number of threads at once, everything else by one at a time; errptr is null, or leads to
 * null or to a string from malloc, which an error replaces; a null pointer for an object is tolerated. Memory that is
 * said to be the caller's is freed by leveldb_free.
 *
 * Programs that need only leveldb/c.h run on either library. Those that call these functions need this one. */
#ifndef TERRACE_INCLUDE_C_H_
#define TERRACE_INCLUDE_C_H_

#include <stddef.h>
#include <stdint.h>

#include "leveldb/c.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct terrace_pinned_t terrace_pinned_t;
typedef struct terrace_report_t terrace_report_t;

/* Terrace's version, as in "0.1.0". Stays for ever. */
LEVELDB_EXPORT const char* terrace_version(void);

/* What went wrong last on this thread in a function of this API or of leveldb/c.h, those without errptr included; empty
 * if nothing did. Good until the next call on this thread that fails. */
LEVELDB_EXPORT const char* terrace_last_error(void);

/* ---- Opening and closing ---- */

/* Open without changing a byte: writes fail, other readers may have the database open. */
LEVELDB_EXPORT void terrace_options_set_read_only(leveldb_options_t*, uint8_t);

/* Bits for each key in the filter that every table has besides LevelDB's: 0 for none, at most 32. Default: 10. */
LEVELDB_EXPORT void terrace_options_set_table_filter_bits(leveldb_options_t*, int);

/* How tables are read. `auto`, the default, maps them, checks that each 64 KiB can be read before its first load, and uses
 * pread after the first read error and once the tables take more than half of the available memory. `mapped` never checks: a
 * sector that cannot be read kills the process with SIGBUS, as in LevelDB. `pread` never maps: every such sector is an
 * error, a load of a block that is in memory costs about three times as much, and each open table a descriptor. Options that
 * do not say take it from the environment variable TERRACE_READ_ACCESS=auto|mapped|pread, which C++ programs set before they
 * open a database. Other numbers count as auto. */
enum { terrace_read_access_auto = 0, terrace_read_access_mapped = 1, terrace_read_access_pread = 2 };
LEVELDB_EXPORT void terrace_options_set_read_access(leveldb_options_t*, int);

/* Whether writes are copied into a mapping of the log, which is prepared ahead with zeros, on ext4 and tmpfs (1, the default),
 * or written by a system call each, at the end of the file, as LevelDB does (0). Both lose nothing when the process is
 * killed, whoever opens the database next. Written logs are for copies of the directory that programs make which know
 * nothing of zeros. Options that do not say take it from the environment variable TERRACE_MAPPED_LOG=0|1, which C++ programs
 * set before they open a database. */
LEVELDB_EXPORT void terrace_options_set_mapped_log(leveldb_options_t*, uint8_t);

/* A logger for leveldb_options_set_info_log, which must outlive the database. `log` is called from any thread, for one
 * line at a time, which does not end in a zero; `destructor` may be null. */
LEVELDB_EXPORT leveldb_logger_t* terrace_logger_create(void* state, void (*destructor)(void*),
                                                       void (*log)(void* state, const char* line, size_t length));
LEVELDB_EXPORT void terrace_logger_destroy(leveldb_logger_t*);

/* leveldb_close, and says what went wrong. The database is closed in any case. */
LEVELDB_EXPORT void terrace_close(leveldb_t* db, char** errptr);

/* ---- Reading ---- */

/* Moves to the last entry whose key is at or before `key`. */
LEVELDB_EXPORT void terrace_iter_seek_for_prev(leveldb_iterator_t*, const char* key, size_t keylen);

/* Looks `count` keys up, all as of one moment. `values` and `value_lengths` have room for as many answers: the caller's
 * memory, or null where there is no value. After an error every answer is null. */
LEVELDB_EXPORT void terrace_multi_get(leveldb_t* db, const leveldb_readoptions_t* options, size_t count,
                                      const char* const* keys, const size_t* key_lengths, char** values,
                                      size_t* value_lengths, char** errptr);

/* The value of a key where it lies in memory, or null if there is none. It keeps alive what it points into: hold it
 * briefly, and destroy it before the database is closed. */
LEVELDB_EXPORT terrace_pinned_t* terrace_get_pinned(leveldb_t* db, const leveldb_readoptions_t* options,
                                                    const char* key, size_t keylen, char** errptr);
LEVELDB_EXPORT const char* terrace_pinned_value(const terrace_pinned_t*, size_t* length);
LEVELDB_EXPORT void terrace_pinned_destroy(terrace_pinned_t*);

/* ---- Writing ---- */

/* Removes every key from `start_key` on and before `limit_key`, as one step; a null end is open. A large range costs about
 * as much as a small one: its tables are removed, durably whatever the options say, and their space is free once nothing
 * that began before reads them. */
LEVELDB_EXPORT void terrace_delete_range(leveldb_t* db, const leveldb_writeoptions_t* options, const char* start_key,
                                         size_t start_key_len, const char* limit_key, size_t limit_key_len, char** errptr);

/* ---- Maintenance ---- */

/* Writes what is in memory to tables. */
LEVELDB_EXPORT void terrace_flush(leveldb_t* db, char** errptr);

/* leveldb_compact_range, and says what went wrong. */
LEVELDB_EXPORT void terrace_compact_range(leveldb_t* db, const char* start_key, size_t start_key_len,
                                          const char* limit_key, size_t limit_key_len, char** errptr);

/* Makes a copy of the database in the directory `name`, which must be absent or empty, while it is in use: a database of its
 * own with all that was written before the call, durable on return. Tables are shared by hard links where the file system
 * allows it. After an error there is nothing. */
LEVELDB_EXPORT void terrace_checkpoint(leveldb_t* db, const char* name, char** errptr);

/* Waits until no flush or merge is due or running. */
LEVELDB_EXPORT void terrace_wait_idle(leveldb_t* db, char** errptr);

/* Every statistic, as a JSON object; the caller's memory. */
LEVELDB_EXPORT char* terrace_stats_json(leveldb_t* db);

/* One number of it by its name, for example "sequence" or "cache_hits". Answers 0 if there is no such number. */
LEVELDB_EXPORT uint8_t terrace_stat(leveldb_t* db, const char* name, uint64_t* value);

/* Checks every file: of an open database, or of one that nobody has open for writing. Damage is in the report; an error
 * is what keeps the check from being done, and the answer is null then. */
LEVELDB_EXPORT terrace_report_t* terrace_verify(leveldb_t* db, char** errptr);
LEVELDB_EXPORT terrace_report_t* terrace_verify_db(const leveldb_options_t*, const char* name, char** errptr);

/* leveldb_repair_db, and says what it found and did. */
LEVELDB_EXPORT terrace_report_t* terrace_repair_db(const leveldb_options_t*, const char* name, char** errptr);

/* How many problems there are, and each of them as "file: what is wrong", null beyond the last. Strings live as long as
 * the report. */
LEVELDB_EXPORT size_t terrace_report_problems(const terrace_report_t*);
LEVELDB_EXPORT const char* terrace_report_problem(const terrace_report_t*, size_t index);

/* All that the report says, as a JSON object; the caller's memory. */
LEVELDB_EXPORT char* terrace_report_json(const terrace_report_t*);
LEVELDB_EXPORT void terrace_report_destroy(terrace_report_t*);

#ifdef __cplusplus
}
#endif

#endif
