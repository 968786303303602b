// An independent check of the lab's figures for LevelDB.

#include <thread>

#include <sys/resource.h>

#include <leveldb/cache.h>
#include <leveldb/db.h>

#include "check.h"

namespace {

void Check(const leveldb::Status& status) {
  if (!status.ok()) check::Fail(status.ToString());
}

leveldb::Slice SliceOf(std::string_view text) { return leveldb::Slice(text.data(), text.size()); }

double Cpu() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

class Store {
 public:
  Store(const std::string& directory, uint64_t cache, uint64_t write_buffer)
      : cache_(leveldb::NewLRUCache(cache)) {
    leveldb::Options options;
    options.create_if_missing = true;
    options.block_cache = cache_.get();
    options.write_buffer_size = write_buffer;
    leveldb::DB* db;
    Check(leveldb::DB::Open(options, directory, &db));
    db_.reset(db);
  }

  void Put(const std::string& key, std::string_view value) {
    Check(db_->Put(leveldb::WriteOptions(), key, SliceOf(value)));
  }

  bool Get(const std::string& key, std::string* value) {
    return db_->Get(leveldb::ReadOptions(), key, value).ok();
  }

  // The memtable is flushed, and compactions are done once the process is idle.
  void Rest() {
    const leveldb::Slice end("~");
    db_->CompactRange(&end, &end);
    double before = -1;
    for (double now = Cpu(); now - before > 0.002; now = Cpu()) {
      before = now;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
  }

  template <typename Visit>
  void Scan(const Visit& visit) {
    std::unique_ptr<leveldb::Iterator> iterator(db_->NewIterator(leveldb::ReadOptions()));
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      visit(iterator->key().size(), iterator->value().size());
    Check(iterator->status());
  }

 private:
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<leveldb::DB> db_;
};

}  // namespace

int main(int argc, char** argv) { return check::Main<Store>(argc, argv); }
