// How databases are opened, read and written. ABI: Options has 96 bytes, ReadOptions 16,
// WriteOptions 1.
#ifndef STORAGE_LEVELDB_INCLUDE_OPTIONS_H_
#define STORAGE_LEVELDB_INCLUDE_OPTIONS_H_

#include <cstddef>

#include "leveldb/export.h"

namespace leveldb {

class Cache;
class Comparator;
class Env;
class FilterPolicy;
class Logger;
class Snapshot;

// The numbers are those in table files.
enum CompressionType { kNoCompression = 0x0, kSnappyCompression = 0x1 };

// The objects behind the pointers stay the caller's and must outlive the database.
struct LEVELDB_EXPORT Options {
  // Bytewise order, the system's environment, LevelDB's defaults.
  Options();

  // The order of keys. A database opens only under the name of the one it was created with.
  const Comparator* comparator;

  // Create the database if there is none.
  bool create_if_missing = false;

  // Refuse a database that exists.
  bool error_if_exists = false;

  // Treat every doubtful byte in logs and manifest as an error. Damage to data that is known to
  // have been durable is an error in any case.
  bool paranoid_checks = false;

  // All input and output, locks and background work go through it. Null is Env::Default().
  Env* env;

  // Where messages for people go. Null: the file LOG in the database's directory.
  Logger* info_log = nullptr;

  // Bytes of a memtable before it is written to a table: 64 KiB to 1 GiB; what is outside is
  // clipped.
  size_t write_buffer_size = 4 * 1024 * 1024;

  // How many files may be open: 74 to 50,000, clipped.
  int max_open_files = 1000;

  // A cache for blocks, which databases may share. One from NewLRUCache is the fastest. Null: 8 MiB
  // of the database's own.
  Cache* block_cache = nullptr;

  // Bytes of user data in a block, before compression: 1 KiB to 4 MiB, clipped.
  size_t block_size = 4 * 1024;

  // Keys between two restart points of a block.
  int block_restart_interval = 16;

  // Bytes of a table before the next one begins: 1 MiB to 1 GiB, clipped.
  size_t max_file_size = 2 * 1024 * 1024;

  CompressionType compression = kSnappyCompression;

  // Continue with the newest manifest and log when a database is opened.
  bool reuse_logs = false;

  // Spares reads of blocks that do not hold a key; see NewBloomFilterPolicy. Null: none.
  const FilterPolicy* filter_policy = nullptr;
};

struct LEVELDB_EXPORT ReadOptions {
  ReadOptions() = default;

  // Checksums are always verified.
  bool verify_checksums = false;

  // Whether what is read stays in the cache. Say no for large scans, of which some blocks do not
  // stay there in any case.
  bool fill_cache = true;

  // Read the database as of this snapshot. Null: as of now.
  const Snapshot* snapshot = nullptr;
};

struct LEVELDB_EXPORT WriteOptions {
  WriteOptions() = default;

  // Wait until this write and every one before it would survive the death of the machine. Without
  // it a write survives the death of the process.
  bool sync = false;
};

}  // namespace leveldb

#endif
