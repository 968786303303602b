// An independent check of the lab's figures for RocksDB, beside its own db_bench, which Debian has
// for its own build alone.

#include <thread>

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/perf_level.h>
#include <rocksdb/table.h>

#include "check.h"

namespace {

void Check(const rocksdb::Status& status) {
  if (!status.ok()) check::Fail(status.ToString());
}

rocksdb::Slice SliceOf(std::string_view text) { return rocksdb::Slice(text.data(), text.size()); }

// Current versions hand the database over as a unique_ptr, earlier ones as a pointer.
template <typename Options>
std::unique_ptr<rocksdb::DB> Open(const Options& options, const std::string& directory) {
  std::unique_ptr<rocksdb::DB> db;
  if constexpr (requires { rocksdb::DB::Open(options, directory, &db); }) {
    Check(rocksdb::DB::Open(options, directory, &db));
  } else {
    rocksdb::DB* opened = nullptr;
    Check(rocksdb::DB::Open(options, directory, &opened));
    db.reset(opened);
  }
  return db;
}

class Store {
 public:
  Store(const std::string& directory, uint64_t cache, uint64_t write_buffer) {
    rocksdb::SetPerfLevel(rocksdb::kDisable);
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(cache);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = write_buffer;
    options.compression = rocksdb::kSnappyCompression;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    db_ = Open(options, directory);
  }

  void Put(const std::string& key, std::string_view value) {
    Check(db_->Put(rocksdb::WriteOptions(), key, SliceOf(value)));
  }

  bool Get(const std::string& key, std::string* value) {
    return db_->Get(rocksdb::ReadOptions(), key, value).ok();
  }

  void Rest() {
    Check(db_->Flush(rocksdb::FlushOptions()));
    for (const char* property : {"rocksdb.compaction-pending", "rocksdb.num-running-compactions"}) {
      uint64_t busy = 1;
      while (db_->GetIntProperty(property, &busy) && busy != 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  template <typename Visit>
  void Scan(const Visit& visit) {
    std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(rocksdb::ReadOptions()));
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      visit(iterator->key().size(), iterator->value().size());
    Check(iterator->status());
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

int main(int argc, char** argv) { return check::Main<Store>(argc, argv); }
