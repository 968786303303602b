#include "leveldb/db.h"

#include <vector>

#include "leveldb/comparator.h"
#include "leveldb/env.h"
#include "leveldb/write_batch.h"
#include "support.h"

namespace leveldb {

Options::Options() : comparator(BytewiseComparator()), env(Env::Default()) {}

Snapshot::~Snapshot() = default;

DB::~DB() = default;

// For databases of other kinds, which derive from DB.
Status DB::Put(const WriteOptions& options, const Slice& key, const Slice& value) {
  WriteBatch batch;
  batch.Put(key, value);
  return Write(options, &batch);
}

Status DB::Delete(const WriteOptions& options, const Slice& key) {
  WriteBatch batch;
  batch.Delete(key);
  return Write(options, &batch);
}

// Reaches the bytes of a batch, which are private.
class WriteBatchInternal {
 public:
  static Slice Contents(const WriteBatch& batch) { return batch.rep_; }
  static void SetSequence(WriteBatch* batch, uint64_t sequence) {
    for (int byte = 0; byte < 8; byte++)
      batch->rep_[byte] = static_cast<char>(sequence >> (8 * byte));
  }
};

namespace {

class EngineSnapshot final : public Snapshot {
 public:
  explicit EngineSnapshot(shim_snapshot* rep) : rep_(rep) {}
  ~EngineSnapshot() override { shim_snapshot_release(rep_); }
  const shim_snapshot* rep() const { return rep_; }

 private:
  shim_snapshot* const rep_;
};

const shim_snapshot* Rep(const Snapshot* snapshot) {
  return snapshot == nullptr ? nullptr : static_cast<const EngineSnapshot*>(snapshot)->rep();
}

class EngineDB final : public DB {
 public:
  explicit EngineDB(shim_db* db) : db_(db) {}
  ~EngineDB() override { shim_db_close(db_); }

  Status Put(const WriteOptions& options, const Slice& key, const Slice& value) override {
    return Take(shim_db_put(db_, options.sync, Bytes(key), Bytes(value)));
  }

  Status Delete(const WriteOptions& options, const Slice& key) override {
    return Take(shim_db_delete(db_, options.sync, Bytes(key)));
  }

  Status Write(const WriteOptions& options, WriteBatch* updates) override {
    // LevelDB takes no batch for a wish to switch memtables.
    if (updates == nullptr) return Take(shim_db_flush(db_));
    uint64_t sequence = 0;
    Status status = Take(
        shim_db_write(db_, options.sync, Bytes(WriteBatchInternal::Contents(*updates)), &sequence));
    if (status.ok()) {
      WriteBatchInternal::SetSequence(updates, sequence);
    } else if (status.IsCorruption()) {
      const Status reason = updates->Iterate(nullptr);
      if (!reason.ok()) return reason;
    }
    return status;
  }

  Status Get(const ReadOptions& options, const Slice& key, std::string* value) override {
    return Take(
        shim_db_get(db_, options.fill_cache, Rep(options.snapshot), Bytes(key), value, AssignTo));
  }

  Iterator* NewIterator(const ReadOptions& options) override {
    shim_cursor* cursor = nullptr;
    const Status status =
        Take(shim_db_cursor(db_, options.fill_cache, Rep(options.snapshot), &cursor));
    return status.ok() ? NewEngineIterator(cursor) : NewErrorIterator(status);
  }

  const Snapshot* GetSnapshot() override { return new EngineSnapshot(shim_db_snapshot(db_)); }

  void ReleaseSnapshot(const Snapshot* snapshot) override {
    delete static_cast<const EngineSnapshot*>(snapshot);
  }

  bool GetProperty(const Slice& property, std::string* value) override {
    value->clear();
    return shim_db_property(db_, Bytes(property), value, AssignTo) != 0;
  }

  void GetApproximateSizes(const Range* range, int n, uint64_t* sizes) override {
    std::vector<shim_range> ranges(n < 0 ? 0 : n);
    for (size_t at = 0; at < ranges.size(); at++)
      ranges[at] = {Bytes(range[at].start), Bytes(range[at].limit)};
    shim_db_sizes(db_, ranges.data(), ranges.size(), sizes);
  }

  void CompactRange(const Slice* begin, const Slice* end) override {
    shim_bytes from, to;
    if (begin != nullptr) from = Bytes(*begin);
    if (end != nullptr) to = Bytes(*end);
    shim_db_compact(db_, begin == nullptr ? nullptr : &from, end == nullptr ? nullptr : &to);
  }

 private:
  shim_db* const db_;
};

}  // namespace

Status DB::Open(const Options& options, const std::string& name, DB** dbptr) {
  *dbptr = nullptr;
  const shim_options settings = EngineOptions(options);
  shim_db* db = nullptr;
  Status status = Take(shim_db_open(&settings, Bytes(name), &db));
  if (status.ok()) *dbptr = new EngineDB(db);
  return status;
}

// Only the environment is looked at: programs call this when the rest of the options is gone
// already.
Status DestroyDB(const std::string& name, const Options& options) {
  const shim_env env = EngineEnv(options.env);
  return Take(shim_destroy(&env, Bytes(name)));
}

Status RepairDB(const std::string& name, const Options& options) {
  const shim_options settings = EngineOptions(options);
  return Take(shim_repair(&settings, Bytes(name)));
}

shim_options EngineOptions(const Options& options) {
  shim_options settings = {};
  settings.comparator = EngineComparator(options.comparator);
  settings.env = EngineEnv(options.env);
  settings.logger = EngineLogger(options.info_log);
  settings.filter = EngineFilter(options.filter_policy);
  settings.cache = EngineCache(options.block_cache);
  settings.custom_cache = EngineCustomCache(options.block_cache);
  settings.write_buffer_size = options.write_buffer_size;
  settings.block_size = options.block_size;
  settings.max_file_size = options.max_file_size;
  settings.max_open_files = options.max_open_files;
  settings.block_restart_interval = options.block_restart_interval;
  settings.compression = options.compression;
  settings.create_if_missing = options.create_if_missing;
  settings.error_if_exists = options.error_if_exists;
  settings.paranoid_checks = options.paranoid_checks;
  settings.reuse_logs = options.reuse_logs;
  return settings;
}

}  // namespace leveldb
