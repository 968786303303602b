// The private interface between the C++ classes and the engine, which is in Rust (src/shim).
// Nothing of it is exported from the shared library.
//
// No function unwinds, in either direction: C++ callbacks are noexcept, Rust functions catch
// panics.
#ifndef TERRACE_LEVELDB_ABI_ENGINE_H_
#define TERRACE_LEVELDB_ABI_ENGINE_H_

#include <cstddef>
#include <cstdint>

extern "C" {

// Borrowed bytes. The same layout as Slice.
struct shim_bytes {
  const char* data;
  size_t size;
};

// How something went: a code of LevelDB's Status, and unless it is 0 a message from malloc, for the
// receiver to free. It comes back in two registers, which matters to short calls.
struct shim_outcome {
  int code;
  uint32_t length;
  char* message;
};

// Takes the bytes of a result.
typedef void (*shim_put)(void* target, const char* data, size_t size);

struct shim_comparator {
  const void* object;  // null: bytewise
  const char* name;
  int (*compare)(const void* object, shim_bytes a, shim_bytes b);
  void (*shortest_separator)(const void* object, shim_bytes start, shim_bytes limit, void* target,
                             shim_put put);
  void (*short_successor)(const void* object, shim_bytes key, void* target, shim_put put);
};

struct shim_filter {
  const void* object;  // null: none, or LevelDB's bloom filter if bloom_bits is not negative
  const char* name;
  int bloom_bits;
  void (*create)(const void* object, const shim_bytes* keys, size_t count, void* target,
                 shim_put put);
  uint8_t (*may_match)(const void* object, shim_bytes key, shim_bytes filter);
};

struct shim_logger {
  void* object;  // null: none
  void (*log)(void* object, const char* message, size_t size);
};

// The engine's calls to a writable file. `append` also hands over to the system.
struct shim_file_calls {
  shim_outcome (*append)(void* file, shim_bytes data);
  shim_outcome (*sync)(void* file);
  shim_outcome (*close)(void* file);
  void (*release)(void* file);
};

struct shim_random_calls {
  shim_outcome (*read)(const void* file, uint64_t offset, char* buffer, size_t size, size_t* got);
  void (*release)(void* file);
};

struct shim_env_calls {
  shim_outcome (*open_random)(void* env, shim_bytes path, void** file, uint64_t* size);
  shim_outcome (*create)(void* env, shim_bytes path, void** file);
  shim_outcome (*open_append)(void* env, shim_bytes path, void** file);
  uint8_t (*exists)(void* env, shim_bytes path);
  shim_outcome (*list)(void* env, shim_bytes dir, void* target, shim_put put);
  shim_outcome (*remove)(void* env, shim_bytes path);
  shim_outcome (*create_dir)(void* env, shim_bytes dir);
  shim_outcome (*remove_dir)(void* env, shim_bytes dir);
  shim_outcome (*file_size)(void* env, shim_bytes path, uint64_t* size);
  shim_outcome (*rename)(void* env, shim_bytes from, shim_bytes to);
  shim_outcome (*lock)(void* env, shim_bytes path, void** lock);
  void (*unlock)(void* env, void* lock);
  void (*schedule)(void* env, void (*function)(void*), void* argument);
  uint64_t (*now_micros)(void* env);
  void (*sleep)(void* env, uint64_t micros);
  shim_outcome (*new_logger)(void* env, shim_bytes path, shim_logger* logger);
  void (*release_logger)(void* logger);
  shim_file_calls file;
  shim_random_calls random;
};

struct shim_env {
  void* object;  // null: the system's
  const shim_env_calls* calls;
};

struct shim_cache;
struct shim_block;

// A cache of the program's own kind. What `insert` takes is released by shim_block_release, called
// by the entry's deleter.
struct shim_custom_cache {
  void* object;  // null: none
  uint64_t (*new_id)(void* cache);
  void* (*lookup)(void* cache, shim_bytes key);
  void* (*insert)(void* cache, shim_bytes key, shim_block* block, size_t charge);
  const shim_block* (*value)(void* cache, void* handle);
  void (*release)(void* cache, void* handle);
  size_t (*total_charge)(const void* cache);
};

struct shim_options {
  shim_comparator comparator;
  shim_env env;
  shim_logger logger;
  shim_filter filter;
  const shim_cache* cache;  // null: see custom_cache
  shim_custom_cache custom_cache;
  size_t write_buffer_size;
  size_t block_size;
  size_t max_file_size;
  int max_open_files;
  int block_restart_interval;
  int compression;
  uint8_t create_if_missing;
  uint8_t error_if_exists;
  uint8_t paranoid_checks;
  uint8_t reuse_logs;
};

struct shim_db;
struct shim_snapshot;
struct shim_cursor;
struct shim_table;
struct shim_table_builder;
struct shim_lock;

// Where a cursor stands; good until it moves.
struct shim_position {
  shim_bytes key;
  shim_bytes value;
  uint8_t valid;
};

struct shim_range {
  shim_bytes start;
  shim_bytes limit;
};

shim_outcome shim_db_open(const shim_options* options, shim_bytes path, shim_db** db);
void shim_db_close(shim_db* db);
shim_outcome shim_db_put(const shim_db* db, uint8_t sync, shim_bytes key, shim_bytes value);
shim_outcome shim_db_delete(const shim_db* db, uint8_t sync, shim_bytes key);
// Stores the sequence number of the first operation.
shim_outcome shim_db_write(const shim_db* db, uint8_t sync, shim_bytes batch, uint64_t* sequence);
shim_outcome shim_db_flush(const shim_db* db);
// Calls `put` once if there is a value; otherwise the code is NotFound.
shim_outcome shim_db_get(const shim_db* db, uint8_t fill_cache, const shim_snapshot* snapshot,
                         shim_bytes key, void* target, shim_put put);
shim_outcome shim_db_cursor(const shim_db* db, uint8_t fill_cache, const shim_snapshot* snapshot,
                            shim_cursor** cursor);
shim_snapshot* shim_db_snapshot(const shim_db* db);
void shim_snapshot_release(shim_snapshot* snapshot);
uint8_t shim_db_property(const shim_db* db, shim_bytes name, void* target, shim_put put);
void shim_db_sizes(const shim_db* db, const shim_range* ranges, size_t count, uint64_t* sizes);
void shim_db_compact(const shim_db* db, const shim_bytes* from, const shim_bytes* to);
shim_outcome shim_destroy(const shim_env* env, shim_bytes path);
shim_outcome shim_repair(const shim_options* options, shim_bytes path);

void shim_cursor_release(shim_cursor* cursor);
void shim_cursor_first(shim_cursor* cursor, shim_position* position);
void shim_cursor_last(shim_cursor* cursor, shim_position* position);
void shim_cursor_seek(shim_cursor* cursor, shim_bytes key, shim_position* position);
void shim_cursor_next(shim_cursor* cursor, shim_position* position);
void shim_cursor_prev(shim_cursor* cursor, shim_position* position);
shim_outcome shim_cursor_status(const shim_cursor* cursor);

shim_cache* shim_cache_new(size_t capacity);
void shim_cache_release(shim_cache* cache);
size_t shim_cache_used(const shim_cache* cache);
void shim_cache_prune(const shim_cache* cache);
void shim_block_release(shim_block* block);

void shim_bloom_create(int bits, const shim_bytes* keys, size_t count, void* target, shim_put put);
uint8_t shim_bloom_may_match(int bits, shim_bytes key, shim_bytes filter);

// The file stays the caller's: `close` and `release` of `calls` are not called.
shim_table_builder* shim_table_builder_new(const shim_options* options, void* file,
                                           const shim_file_calls* calls);
void shim_table_builder_release(shim_table_builder* builder);
shim_outcome shim_table_builder_change(shim_table_builder* builder, const shim_options* options);
shim_outcome shim_table_builder_add(shim_table_builder* builder, shim_bytes key, shim_bytes value);
shim_outcome shim_table_builder_flush(shim_table_builder* builder);
shim_outcome shim_table_builder_finish(shim_table_builder* builder);
void shim_table_builder_abandon(shim_table_builder* builder);
uint64_t shim_table_builder_entries(const shim_table_builder* builder);
uint64_t shim_table_builder_size(const shim_table_builder* builder);

shim_outcome shim_table_open(const shim_options* options, void* file, uint64_t size,
                             const shim_random_calls* calls, shim_table** table);
void shim_table_release(shim_table* table);
uint64_t shim_table_offset(const shim_table* table, shim_bytes key);
uint8_t shim_table_may_contain(const shim_table* table, shim_bytes key);
shim_cursor* shim_table_cursor(const shim_table* table, uint8_t fill_cache);

// Calls `put` for each line of the file as text.
shim_outcome shim_dump(const shim_env* env, shim_bytes path, void* target, shim_put put);

shim_outcome shim_lock_file(shim_bytes path, shim_lock** lock);
void shim_unlock_file(shim_lock* lock);
void shim_schedule(void (*function)(void*), void* argument);
void shim_test_directory(void* target, shim_put put);

}  // extern "C"

#endif
