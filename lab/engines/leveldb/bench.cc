// LevelDB.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include "../common/driver.h"
#include "../common/iterator_cursor.h"

namespace {

void Check(const leveldb::Status& status) {
  if (!status.ok()) throw lab::Failure(status.ToString());
}

leveldb::Slice SliceOf(std::string_view text) { return leveldb::Slice(text.data(), text.size()); }

class LevelDb {
 public:
  static lab::Description Describe(const lab::Settings&) {
    lab::Description description;
    description.engine = "leveldb";
    description.title = "LevelDB";
    description.version =
        std::to_string(leveldb::kMajorVersion) + "." + std::to_string(leveldb::kMinorVersion);
    description.variants = {{"", "LevelDB"}, {"filter", "LevelDB, filters"}};
    description.asynchronous =
        "written to the log file by write(); survives the process, not the machine";
    description.synchronous = "the log is forced to the disk by fdatasync before the call returns";
    description.settings =
        "cache_size: an LRU block cache of its own (default 8 MiB); write_buffer_size, block_size, "
        "max_open_files, "
        "bloom_bits and compression: the options of these names (defaults 4 MiB, 4 KiB, 1,000, "
        "none, snappy); nothing "
        "else is set. One background thread. Variant filter: 10 bits a key where bloom_bits asks "
        "for none";
    description.limits = {
        "waitcompact ends 0.3 s after the process became idle, since LevelDB cannot be asked"};
    description.unsupported = {
        {"bulkload", "LevelDB has no way to load ordered data other than batches"}};
    return description;
  }

  explicit LevelDb(const lab::Settings& settings) : settings_(settings) {
    options_.create_if_missing = true;
    if (settings.write_buffer_size != 0) options_.write_buffer_size = settings.write_buffer_size;
    if (settings.block_size != 0) options_.block_size = settings.block_size;
    if (settings.max_open_files != 0)
      options_.max_open_files = static_cast<int>(settings.max_open_files);
    options_.compression =
        settings.compression ? leveldb::kSnappyCompression : leveldb::kNoCompression;
    const uint64_t bits = settings.FilterBits();
    if (bits != 0) {
      filter_.reset(leveldb::NewBloomFilterPolicy(static_cast<int>(bits)));
      options_.filter_policy = filter_.get();
    }
  }

  void Open(const lab::Use& use) {
    if (settings_.cache_size != 0) {
      cache_.reset(leveldb::NewLRUCache(settings_.cache_size));
      options_.block_cache = cache_.get();
    }
    leveldb::DB* db = nullptr;
    Check(leveldb::DB::Open(options_, settings_.db, &db));
    db_.reset(db);
    Adapt(use);
  }

  void Adapt(const lab::Use& use) { write_options_.sync = use.synchronous; }
  void Close() { db_.reset(); }
  void Destroy() { Check(leveldb::DestroyDB(settings_.db, options_)); }
  void Compact() { db_->CompactRange(nullptr, nullptr); }

  uint64_t WaitCompact() {
    // Writes the memtable out; there is nothing in the range to compact.
    const leveldb::Slice beyond("\xff\xff\xff\xff");
    db_->CompactRange(&beyond, &beyond);
    return lab::WaitUntilQuiet();
  }

  // Out of the property's text: "--- level 0 ---" before the files of each level, and of each file
  // " NUMBER:BYTES[" with its keys behind it.
  std::vector<lab::Level> Levels() {
    std::string text;
    std::vector<lab::Level> levels;
    if (!db_->GetProperty("leveldb.sstables", &text)) return levels;
    for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = text.find('\n', begin);
      const std::string line = text.substr(begin, end == std::string::npos ? end : end - begin);
      if (line.starts_with("--- level ")) {
        levels.emplace_back();
      } else if (const size_t colon = line.find(':'); colon != std::string::npos && !levels.empty()) {
        levels.back().files++;
        levels.back().bytes += std::strtoull(line.c_str() + colon + 1, nullptr, 10);
      }
    }
    return levels;
  }

  class Session {
   public:
    explicit Session(LevelDb* engine) : db_(*engine->db_), write_options_(engine->write_options_) {}

    void Put(std::string_view key, std::string_view value) {
      Check(db_.Put(write_options_, SliceOf(key), SliceOf(value)));
    }

    void Delete(std::string_view key) { Check(db_.Delete(write_options_, SliceOf(key))); }

    bool Get(std::string_view key, std::string* value) {
      const leveldb::Status status = db_.Get(leveldb::ReadOptions(), SliceOf(key), value);
      if (status.IsNotFound()) return false;
      Check(status);
      return true;
    }

    void BatchPut(std::string_view key, std::string_view value) {
      batch_.Put(SliceOf(key), SliceOf(value));
    }
    void BatchDelete(std::string_view key) { batch_.Delete(SliceOf(key)); }

    void Commit() {
      Check(db_.Write(write_options_, &batch_));
      batch_.Clear();
    }

   private:
    friend class LevelDb;
    leveldb::DB& db_;
    const leveldb::WriteOptions write_options_;
    leveldb::WriteBatch batch_;
  };

  class Cursor : public lab::IteratorCursor<leveldb::Iterator> {
   public:
    Cursor(Session* session, uint64_t)
        : IteratorCursor(session->db_.NewIterator(leveldb::ReadOptions())) {}
  };

  using Loader = lab::NoLoader<Session>;

 private:
  const lab::Settings settings_;
  leveldb::Options options_;
  leveldb::WriteOptions write_options_;
  // In this order: the database goes first, then what it points to.
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<leveldb::DB> db_;
};

}  // namespace

int main(int argc, char** argv) { return lab::Main<LevelDb>(argc, argv); }
