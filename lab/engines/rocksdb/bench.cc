// RocksDB.

#include <cstdint>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/perf_level.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/db_ttl.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include "../common/driver.h"
#include "../common/iterator_cursor.h"

namespace {

void Check(const rocksdb::Status& status) {
  if (!status.ok()) throw lab::Failure(status.ToString());
}

rocksdb::Slice SliceOf(std::string_view text) { return rocksdb::Slice(text.data(), text.size()); }

// Current versions hand the database over as a unique_ptr, earlier ones as a pointer: `open` opens it
// into either.
template <typename Database, typename Open>
std::unique_ptr<rocksdb::DB> Opened(const Open& open) {
  if constexpr (std::is_invocable_v<Open, std::unique_ptr<Database>*>) {
    std::unique_ptr<Database> db;
    Check(open(&db));
    return db;
  } else {
    Database* db = nullptr;
    const rocksdb::Status status = open(&db);
    std::unique_ptr<rocksdb::DB> opened(db);
    Check(status);
    return opened;
  }
}

class RocksDb {
 public:
  static constexpr bool kExpires = true;

  static lab::Description Describe(const lab::Settings&) {
    lab::Description description;
    description.engine = "rocksdb";
    description.title = "RocksDB";
    description.version = std::to_string(ROCKSDB_MAJOR) + "." + std::to_string(ROCKSDB_MINOR) +
                          "." + std::to_string(ROCKSDB_PATCH);
    description.variants = {
        {"", "RocksDB"}, {"filter", "RocksDB, filters"}, {"blob", "RocksDB, BlobDB"}};
    description.asynchronous =
        "written to the log file by write(); survives the process, not the machine";
    description.synchronous = "the log is forced to the disk by fdatasync before the call returns";
    description.settings =
        "cache_size: an LRU block cache (default 8 MiB); write_buffer_size, block_size, "
        "bloom_bits: the options of "
        "these names (defaults 64 MiB, 4 KiB, none); max_open_files: that option (default: no "
        "limit); compression: "
        "snappy or none on every level. Everything else is RocksDB's default, max_background_jobs "
        "= 2 and recycle_log_file_num = 0 (no log is used again) included, but for "
        "its counters of performance, which are off (PerfLevel::kDisable in every thread, as in "
        "db_bench). Several keys are got by MultiGet with async_io, whose reads of one file go out at "
        "once (io_uring); those of several files would need a build with folly. Bulk "
        "load: sorted tables of 64 MiB by SstFileWriter, moved in by IngestExternalFile. Ranges "
        "are deleted by DeleteRange, keyspaces are column families, entries expire by DBWithTTL: "
        "when a compaction meets them. Variant "
        "filter: 10 bits a key where bloom_bits asks for none; blob: the same, and values from 1 "
        "KiB in blob files with garbage collection";
    return description;
  }

  explicit RocksDb(const lab::Settings& settings) : settings_(settings) {
    options_.create_if_missing = true;
    if (settings.write_buffer_size != 0) options_.write_buffer_size = settings.write_buffer_size;
    if (settings.max_open_files != 0)
      options_.max_open_files = static_cast<int>(settings.max_open_files);
    options_.compression =
        settings.compression ? rocksdb::kSnappyCompression : rocksdb::kNoCompression;
    if (settings.variant == "blob") {
      options_.enable_blob_files = true;
      options_.min_blob_size = 1024;
      options_.enable_blob_garbage_collection = true;
      options_.blob_compression_type = options_.compression;
    }
  }

  void Open(const lab::Use& use) {
    rocksdb::BlockBasedTableOptions table;
    if (settings_.block_size != 0) table.block_size = settings_.block_size;
    if (settings_.cache_size != 0) table.block_cache = rocksdb::NewLRUCache(settings_.cache_size);
    const bool blob = settings_.variant == "blob";
    const uint64_t bits = blob && settings_.bloom_bits == 0 ? 10 : settings_.FilterBits();
    if (bits != 0) {
      table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(static_cast<double>(bits)));
    }
    options_.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    if (use.time_to_live != 0) {
      const int32_t seconds = static_cast<int32_t>(use.time_to_live);
      db_ = Opened<rocksdb::DBWithTTL>(
          [&](auto* db) -> decltype(rocksdb::DBWithTTL::Open(options_, settings_.db, db, seconds)) {
            return rocksdb::DBWithTTL::Open(options_, settings_.db, db, seconds);
          });
    } else {
      OpenWithKeyspaces();
    }
    Adapt(use);
  }

  void OpenKeyspaces(uint64_t count) {
    for (uint64_t number = keyspaces_.size(); number < count; number++) {
      rocksdb::ColumnFamilyHandle* keyspace = nullptr;
      Check(db_->CreateColumnFamily(options_, KeyspaceName(number), &keyspace));
      keyspaces_.push_back(keyspace);
    }
  }

  std::vector<lab::Level> Levels() {
    rocksdb::ColumnFamilyMetaData family;
    db_->GetColumnFamilyMetaData(&family);
    std::vector<lab::Level> levels;
    for (const rocksdb::LevelMetaData& level : family.levels) {
      levels.push_back({level.files.size(), level.size});
    }
    return levels;
  }

  void Adapt(const lab::Use& use) { write_options_.sync = use.synchronous; }

  void Close() {
    for (rocksdb::ColumnFamilyHandle* keyspace : keyspaces_) {
      Check(db_->DestroyColumnFamilyHandle(keyspace));
    }
    keyspaces_.clear();
    Check(db_->Close());
    db_.reset();
  }

  void Destroy() { Check(rocksdb::DestroyDB(settings_.db, options_)); }
  void Compact() { Check(db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr)); }

  void WaitCompact() {
    Check(db_->Flush(rocksdb::FlushOptions()));
    if (!keyspaces_.empty()) Check(db_->Flush(rocksdb::FlushOptions(), keyspaces_));
    while (Has(rocksdb::DB::Properties::kMemTableFlushPending) ||
           Has(rocksdb::DB::Properties::kNumRunningFlushes) ||
           Has(rocksdb::DB::Properties::kCompactionPending) ||
           Has(rocksdb::DB::Properties::kNumRunningCompactions)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  class Session {
   public:
    explicit Session(RocksDb* engine)
        : engine_(*engine), db_(*engine->db_), write_options_(engine->write_options_) {
      // Of this thread. What it is by default counts each comparison of keys, which costs a sixth
      // of random writes.
      rocksdb::SetPerfLevel(rocksdb::kDisable);
    }

    void Put(std::string_view key, std::string_view value) {
      Check(db_.Put(write_options_, SliceOf(key), SliceOf(value)));
    }

    void Delete(std::string_view key) { Check(db_.Delete(write_options_, SliceOf(key))); }

    bool Get(std::string_view key, std::string* value) {
      const rocksdb::Status status = db_.Get(read_options_, SliceOf(key), value);
      if (status.IsNotFound()) return false;
      Check(status);
      return true;
    }

    template <typename Show>
    void MultiGet(const std::vector<std::string_view>& keys, const Show& show) {
      static const rocksdb::ReadOptions options = [] {
        rocksdb::ReadOptions at_once;
        at_once.async_io = true;
        return at_once;
      }();
      slices_.clear();
      for (const std::string_view key : keys) slices_.push_back(SliceOf(key));
      values_.resize(keys.size());
      statuses_.resize(keys.size());
      db_.MultiGet(options, db_.DefaultColumnFamily(), keys.size(), slices_.data(),
                   values_.data(), statuses_.data());
      for (size_t i = 0; i < keys.size(); i++) {
        if (statuses_[i].IsNotFound()) continue;
        Check(statuses_[i]);
        show(keys[i], std::string_view(values_[i].data(), values_[i].size()));
        values_[i].Reset();
      }
    }

    void DeleteRange(std::string_view first, std::string_view end) {
      Check(db_.DeleteRange(write_options_, db_.DefaultColumnFamily(), SliceOf(first),
                            SliceOf(end)));
    }

    void PutIn(uint64_t keyspace, std::string_view key, std::string_view value) {
      Check(db_.Put(write_options_, engine_.keyspaces_[keyspace], SliceOf(key), SliceOf(value)));
    }

    bool GetIn(uint64_t keyspace, std::string_view key, std::string* value) {
      const rocksdb::Status status =
          db_.Get(read_options_, engine_.keyspaces_[keyspace], SliceOf(key), value);
      if (status.IsNotFound()) return false;
      Check(status);
      return true;
    }

    void BatchPut(std::string_view key, std::string_view value) {
      Check(batch_.Put(SliceOf(key), SliceOf(value)));
    }
    void BatchDelete(std::string_view key) { Check(batch_.Delete(SliceOf(key))); }

    void Commit() {
      Check(db_.Write(write_options_, &batch_));
      batch_.Clear();
    }

   private:
    friend class RocksDb;
    const RocksDb& engine_;
    rocksdb::DB& db_;
    const rocksdb::ReadOptions read_options_;
    const rocksdb::WriteOptions write_options_;
    rocksdb::WriteBatch batch_;
    // Of MultiGet.
    std::vector<rocksdb::Slice> slices_;
    std::vector<rocksdb::PinnableSlice> values_;
    std::vector<rocksdb::Status> statuses_;
  };

  class Cursor : public lab::IteratorCursor<rocksdb::Iterator> {
   public:
    Cursor(Session* session, uint64_t)
        : IteratorCursor(session->db_.NewIterator(session->read_options_)) {}
  };

  class Loader {
   public:
    explicit Loader(Session* session)
        : engine_(session->engine_),
          writer_(rocksdb::EnvOptions(), engine_.options_, engine_.db_->DefaultColumnFamily()) {}

    void Put(std::string_view key, std::string_view value) {
      if (!writing_) {
        tables_.push_back(engine_.settings_.db + "/load-" + std::to_string(tables_.size()) +
                          ".sst");
        Check(writer_.Open(tables_.back()));
        writing_ = true;
      }
      Check(writer_.Put(SliceOf(key), SliceOf(value)));
      if (writer_.FileSize() >= kTableSize) EndTable();
    }

    void Finish() {
      EndTable();
      if (tables_.empty()) return;
      rocksdb::IngestExternalFileOptions options;
      options.move_files = true;
      Check(engine_.db_->IngestExternalFile(tables_, options));
    }

   private:
    static constexpr uint64_t kTableSize = 64 << 20;

    void EndTable() {
      if (!writing_) return;
      Check(writer_.Finish());
      writing_ = false;
    }

    const RocksDb& engine_;
    rocksdb::SstFileWriter writer_;
    std::vector<std::string> tables_;
    bool writing_ = false;
  };

 private:
  static std::string KeyspaceName(uint64_t number) {
    return "keyspace-" + std::to_string(number);
  }

  // A database whose column families are not all opened is refused.
  void OpenWithKeyspaces() {
    std::vector<std::string> names;
    const rocksdb::Status listed =
        rocksdb::DB::ListColumnFamilies(options_, settings_.db, &names);
    if (!listed.ok() || names.size() < 2) {
      db_ = Opened<rocksdb::DB>(
          [&](auto* db) -> decltype(rocksdb::DB::Open(options_, settings_.db, db)) {
            return rocksdb::DB::Open(options_, settings_.db, db);
          });
      return;
    }
    std::vector<rocksdb::ColumnFamilyDescriptor> families = {
        {rocksdb::kDefaultColumnFamilyName, options_}};
    for (size_t number = 0; number + 1 < names.size(); number++)
      families.emplace_back(KeyspaceName(number), options_);
    db_ = Opened<rocksdb::DB>(
        [&](auto* db)
            -> decltype(rocksdb::DB::Open(options_, settings_.db, families, &keyspaces_, db)) {
          return rocksdb::DB::Open(options_, settings_.db, families, &keyspaces_, db);
        });
    Check(db_->DestroyColumnFamilyHandle(keyspaces_.front()));
    keyspaces_.erase(keyspaces_.begin());
  }

  bool Has(const std::string& property) const {
    uint64_t number = 0;
    if (!db_->GetAggregatedIntProperty(property, &number))
      throw lab::Failure("RocksDB does not know " + property);
    return number != 0;
  }

  const lab::Settings settings_;
  rocksdb::Options options_;
  rocksdb::WriteOptions write_options_;
  std::unique_ptr<rocksdb::DB> db_;
  // Column families beside the default one.
  std::vector<rocksdb::ColumnFamilyHandle*> keyspaces_;
};

}  // namespace

int main(int argc, char** argv) { return lab::Main<RocksDb>(argc, argv); }
