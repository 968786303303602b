// RocksDB.

#include <cstdint>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/perf_level.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>

#include "../common/driver.h"
#include "../common/iterator_cursor.h"

namespace {

void Check(const rocksdb::Status& status) {
  if (!status.ok()) throw lab::Failure(status.ToString());
}

rocksdb::Slice SliceOf(std::string_view text) { return rocksdb::Slice(text.data(), text.size()); }

// Current versions hand the database over as a unique_ptr, earlier ones as a pointer.
template <typename Options>
rocksdb::Status OpenInto(const Options& options, const std::string& path,
                         std::unique_ptr<rocksdb::DB>* db) {
  if constexpr (requires { rocksdb::DB::Open(options, path, db); }) {
    return rocksdb::DB::Open(options, path, db);
  } else {
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options, path, &opened);
    db->reset(opened);
    return status;
  }
}

class RocksDb {
 public:
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
        "= 2 included, but for "
        "its counters of performance, which are off (PerfLevel::kDisable in every thread, as in "
        "db_bench). Bulk "
        "load: sorted tables of 64 MiB by SstFileWriter, moved in by IngestExternalFile. Variant "
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
    Check(OpenInto(options_, settings_.db, &db_));
    Adapt(use);
  }

  void Adapt(const lab::Use& use) { write_options_.sync = use.synchronous; }

  void Close() {
    Check(db_->Close());
    db_.reset();
  }

  void Destroy() { Check(rocksdb::DestroyDB(settings_.db, options_)); }
  void Compact() { Check(db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr)); }

  void WaitCompact() {
    Check(db_->Flush(rocksdb::FlushOptions()));
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
  bool Has(const std::string& property) const {
    uint64_t number = 0;
    if (!db_->GetIntProperty(property, &number))
      throw lab::Failure("RocksDB does not know " + property);
    return number != 0;
  }

  const lab::Settings settings_;
  rocksdb::Options options_;
  rocksdb::WriteOptions write_options_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

int main(int argc, char** argv) { return lab::Main<RocksDb>(argc, argv); }
