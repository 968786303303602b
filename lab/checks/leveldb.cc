// An independent check of the lab's figures for LevelDB: loops as in LevelDB's own db_bench, and
// nothing of the lab's driver. No clock within a loop, keys by snprintf, another generator of
// random numbers.
//
//     leveldb DIRECTORY NUM CACHE_SIZE WRITE_BUFFER_SIZE
//
// Prints a name and operations per second for each of fillseq, fillrandom, readrandom and readseq.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include <sys/resource.h>

#include <leveldb/cache.h>
#include <leveldb/db.h>

namespace {

void Check(const leveldb::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

// One million bytes, of which a compressor leaves half.
std::string HalfCompressible() {
  std::minstd_rand random(301);
  std::string text;
  while (text.size() < 1000000) {
    std::string piece;
    for (int i = 0; i < 50; i++) piece += static_cast<char>(' ' + random() % 95);
    text += piece + piece;
  }
  return text;
}

class Bench {
 public:
  Bench(const std::string& directory, int num, size_t cache, size_t write_buffer)
      : directory_(directory),
        num_(num),
        cache_(leveldb::NewLRUCache(cache)),
        values_(HalfCompressible()) {
    options_.create_if_missing = true;
    options_.block_cache = cache_.get();
    options_.write_buffer_size = write_buffer;
  }

  void Fill(bool in_order) {
    db_.reset();
    Check(leveldb::DestroyDB(directory_, options_));
    leveldb::DB* db;
    Check(leveldb::DB::Open(options_, directory_, &db));
    db_.reset(db);
    const auto start = std::chrono::steady_clock::now();
    size_t at = 0;
    for (int i = 0; i < num_; i++) {
      char key[100];
      std::snprintf(key, sizeof key, "%016d", in_order ? i : RandomKey());
      if (at + 100 > values_.size()) at = 0;
      Check(db_->Put(leveldb::WriteOptions(), key, leveldb::Slice(values_.data() + at, 100)));
      at += 100;
    }
    Report(in_order ? "fillseq" : "fillrandom", num_, start);
  }

  // The lab reads a database at rest: memtable flushed, compactions done.
  void WaitCompact() {
    const leveldb::Slice end("~");
    db_->CompactRange(&end, &end);
    double before = -1;
    for (double now = Cpu(); now - before > 0.002; now = Cpu()) {
      before = now;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
  }

  void ReadRandom() {
    const auto start = std::chrono::steady_clock::now();
    std::string value;
    int found = 0;
    for (int i = 0; i < num_; i++) {
      char key[100];
      std::snprintf(key, sizeof key, "%016d", RandomKey());
      if (db_->Get(leveldb::ReadOptions(), key, &value).ok()) found++;
    }
    Report("readrandom", num_, start);
    if (found < num_ / 2) Check(leveldb::Status::Corruption("too few keys found"));
  }

  void ReadSequential() {
    const auto start = std::chrono::steady_clock::now();
    std::unique_ptr<leveldb::Iterator> iterator(db_->NewIterator(leveldb::ReadOptions()));
    int steps = 0;
    size_t bytes = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      bytes += iterator->key().size() + iterator->value().size();
      steps++;
    }
    Check(iterator->status());
    Report("readseq", steps, start);
    if (bytes != static_cast<size_t>(steps) * 116)
      Check(leveldb::Status::Corruption("wrong sizes"));
  }

 private:
  int RandomKey() { return static_cast<int>(random_() % static_cast<unsigned>(num_)); }

  static double Cpu() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  }

  static void Report(const char* name, int operations,
                     std::chrono::steady_clock::time_point start) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%s %.0f\n", name, operations / seconds.count());
  }

  const std::string directory_;
  const int num_;
  leveldb::Options options_;
  std::unique_ptr<leveldb::Cache> cache_;
  const std::string values_;
  std::mt19937 random_;
  std::unique_ptr<leveldb::DB> db_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: leveldb DIRECTORY NUM CACHE_SIZE WRITE_BUFFER_SIZE\n");
    return 2;
  }
  Bench bench(argv[1], std::atoi(argv[2]), std::strtoull(argv[3], nullptr, 10),
              std::strtoull(argv[4], nullptr, 10));
  bench.Fill(true);
  bench.Fill(false);
  bench.WaitCompact();
  bench.ReadRandom();
  bench.ReadSequential();
  return 0;
}
