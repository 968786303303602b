// A database: a persistent, ordered map from keys to values.
#ifndef STORAGE_LEVELDB_INCLUDE_DB_H_
#define STORAGE_LEVELDB_INCLUDE_DB_H_

#include <cstdint>
#include <cstdio>

#include "leveldb/export.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"

namespace leveldb {

// The version of LevelDB that this library stands in for.
static const int kMajorVersion = 1;
static const int kMinorVersion = 23;

struct Options;
struct ReadOptions;
struct WriteOptions;
class WriteBatch;

// The database at one moment. Given back through DB::ReleaseSnapshot.
class LEVELDB_EXPORT Snapshot {
 protected:
  virtual ~Snapshot();
};

struct LEVELDB_EXPORT Range {
  Range() = default;
  Range(const Slice& s, const Slice& l) : start(s), limit(l) {}

  Slice start;  // inclusive
  Slice limit;  // exclusive
};

// Any number of threads at once.
class LEVELDB_EXPORT DB {
 public:
  // On success *dbptr is the database, to be deleted; otherwise null.
  static Status Open(const Options& options, const std::string& name, DB** dbptr);

  DB() = default;

  DB(const DB&) = delete;
  DB& operator=(const DB&) = delete;

  virtual ~DB();

  virtual Status Put(const WriteOptions& options, const Slice& key, const Slice& value) = 0;

  // Removing a key that has no value is no error.
  virtual Status Delete(const WriteOptions& options, const Slice& key) = 0;

  virtual Status Write(const WriteOptions& options, WriteBatch* updates) = 0;

  // NotFound if there is no value; then *value is as it was.
  virtual Status Get(const ReadOptions& options, const Slice& key, std::string* value) = 0;

  // To be deleted before the database.
  virtual Iterator* NewIterator(const ReadOptions& options) = 0;

  virtual const Snapshot* GetSnapshot() = 0;
  virtual void ReleaseSnapshot(const Snapshot* snapshot) = 0;

  // "leveldb.num-files-at-level<N>", "leveldb.stats", "leveldb.sstables",
  // "leveldb.approximate-memory-usage".
  virtual bool GetProperty(const Slice& property, std::string* value) = 0;

  // About how many bytes each range takes on disk, in sizes[0..n-1].
  virtual void GetApproximateSizes(const Range* range, int n, uint64_t* sizes) = 0;

  // Compacts the range between two keys, both inclusive; null is an open end.
  virtual void CompactRange(const Slice* begin, const Slice* end) = 0;
};

// Removes a database and, if nothing else is in it, its directory.
LEVELDB_EXPORT Status DestroyDB(const std::string& name, const Options& options);

// Saves what can be saved of a database that does not open.
LEVELDB_EXPORT Status RepairDB(const std::string& dbname, const Options& options);

}  // namespace leveldb

#endif
