// Many databases open in one process: what they take in memory, idle or under a mixed load.
//
//   bench idle DIR DATABASES ENTRIES            opens, writes ENTRIES of 100 bytes to each, says what is resident
//   bench mixed DIR DATABASES SECONDS THREADS   puts, gets and scans of random databases, a line every ten seconds
//
// Built against leveldb/c.h (Terrace's or LevelDB's library), or with -DROCKSDB against RocksDB,
// whose databases share a block cache and a WriteBufferManager of BUDGET bytes together. LevelDB's
// share a cache.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#ifdef ROCKSDB
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>
#include <rocksdb/write_buffer_manager.h>
#else
#include <leveldb/c.h>
#endif

static void check(bool good, const std::string& what) {
  if (!good) {
    fprintf(stderr, "%s\n", what.c_str());
    exit(1);
  }
}

static size_t budget() {
  const char* text = getenv("BUDGET");
  return text == nullptr ? 0 : strtoull(text, nullptr, 10);
}

#ifdef ROCKSDB
struct Database {
  rocksdb::DB* db;

  static rocksdb::Options options() {
    static auto cache = budget() == 0 ? nullptr : rocksdb::NewLRUCache(budget());
    static auto memory = cache == nullptr ? nullptr
        : std::make_shared<rocksdb::WriteBufferManager>(budget() / 2, cache, /*allow_stall=*/true);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 4 << 20;
    options.max_open_files = 1000;
    if (memory != nullptr) {
      rocksdb::BlockBasedTableOptions table;
      table.block_cache = cache;
      table.cache_index_and_filter_blocks = true;
      options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
      options.write_buffer_manager = memory;
    }
    return options;
  }
  void open(const std::string& path) {
    auto status = rocksdb::DB::Open(options(), path, &db);
    check(status.ok(), status.ToString());
  }
  void put(const std::string& key, const std::string& value) {
    auto status = db->Put({}, key, value);
    check(status.ok(), status.ToString());
  }
  size_t get(const std::string& key) {
    std::string value;
    return db->Get({}, key, &value).ok() ? value.size() : 0;
  }
  size_t scan(const std::string& key, int count) {
    size_t bytes = 0;
    rocksdb::Iterator* iter = db->NewIterator({});
    for (iter->Seek(key); iter->Valid() && count-- > 0; iter->Next()) bytes += iter->value().size();
    delete iter;
    return bytes;
  }
  void close() { delete db; }
};
#else
struct Database {
  leveldb_t* db;

  void open(const std::string& path) {
    static leveldb_cache_t* cache =
        budget() == 0 ? nullptr : leveldb_cache_create_lru(budget() / 4);
    leveldb_options_t* options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    if (cache != nullptr) leveldb_options_set_cache(options, cache);
    char* error = nullptr;
    db = leveldb_open(options, path.c_str(), &error);
    check(error == nullptr, error == nullptr ? "" : error);
    leveldb_options_destroy(options);
  }
  void put(const std::string& key, const std::string& value) {
    static leveldb_writeoptions_t* options = leveldb_writeoptions_create();
    char* error = nullptr;
    leveldb_put(db, options, key.data(), key.size(), value.data(), value.size(), &error);
    check(error == nullptr, error == nullptr ? "" : error);
  }
  static leveldb_readoptions_t* reads() {
    static leveldb_readoptions_t* options = leveldb_readoptions_create();
    return options;
  }
  size_t get(const std::string& key) {
    size_t length = 0;
    char* error = nullptr;
    char* value = leveldb_get(db, reads(), key.data(), key.size(), &length, &error);
    check(error == nullptr, error == nullptr ? "" : error);
    leveldb_free(value);
    return value == nullptr ? 0 : length;
  }
  size_t scan(const std::string& key, int count) {
    size_t bytes = 0, length = 0;
    leveldb_iterator_t* iter = leveldb_create_iterator(db, reads());
    for (leveldb_iter_seek(iter, key.data(), key.size()); leveldb_iter_valid(iter) && count-- > 0;
         leveldb_iter_next(iter)) {
      leveldb_iter_value(iter, &length);
      bytes += length;
    }
    leveldb_iter_destroy(iter);
    return bytes;
  }
  void close() { leveldb_close(db); }
};
#endif

// Megabytes of a line of /proc/self/status.
static double resident(const char* name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.compare(0, strlen(name), name) == 0) return atof(line.c_str() + strlen(name) + 1) / 1024;
  return 0;
}

static std::string memory() {
  char text[200];
  snprintf(text, sizeof text, "resident %6.1f MB: anonymous %6.1f, file pages %6.1f", resident("VmRSS"),
           resident("RssAnon"), resident("RssFile") + resident("RssShmem"));
  return text;
}

struct Random {
  uint64_t state;
  uint32_t below(uint32_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return uint32_t(((state >> 33) * bound) >> 31);
  }
};

// Half of it compresses.
static std::string value_of(Random& random, size_t size) {
  std::string value(size, 'v');
  for (size_t at = 0; at < size / 2; at++) value[at] = char(random.below(256));
  return value;
}

static std::string key_of(uint32_t number) {
  char text[20];
  snprintf(text, sizeof text, "%016u", number);
  return text;
}

static void mixed(std::vector<Database>& databases, int seconds, int threads) {
  const uint32_t entries = 20000;
  std::atomic<uint64_t> puts{0}, gets{0}, scans{0}, worst{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; thread++) {
    running.emplace_back([&, thread] {
      Random random{uint64_t(thread) + 1};
      while (!done) {
        Database& db = databases[random.below(uint32_t(databases.size()))];
        std::string key = key_of(random.below(entries));
        uint32_t kind = random.below(10);
        auto start = std::chrono::steady_clock::now();
        if (kind < 5) {
          db.put(key, value_of(random, 400));
          puts++;
        } else if (kind < 9) {
          db.get(key);
          gets++;
        } else {
          db.scan(key, 20);
          scans++;
        }
        uint64_t micros = uint64_t(std::chrono::duration_cast<std::chrono::microseconds>(
                                       std::chrono::steady_clock::now() - start).count());
        for (uint64_t seen = worst; micros > seen && !worst.compare_exchange_weak(seen, micros);) {}
      }
    });
  }
  double most = 0;
  for (int second = 1; second <= seconds; second++) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    most = std::max(most, resident("RssAnon"));
    if (second % 10 == 0 || second == seconds) {
      printf("%4d s  %s, most anonymous %6.1f; %llu puts, %llu gets, %llu scans, longest %.1f ms\n", second,
             memory().c_str(), most, (unsigned long long)puts.exchange(0), (unsigned long long)gets.exchange(0),
             (unsigned long long)scans.exchange(0), double(worst.exchange(0)) / 1000);
      fflush(stdout);
    }
  }
  done = true;
  for (auto& thread : running) thread.join();
}

int main(int argc, char** argv) {
  check(argc >= 5, "bench idle|mixed DIR DATABASES ENTRIES|SECONDS [THREADS]");
  std::string dir = argv[2];
  std::vector<Database> databases(size_t(atoi(argv[3])));
  for (size_t at = 0; at < databases.size(); at++) databases[at].open(dir + "/" + std::to_string(at));
  printf("%zu databases open: %s\n", databases.size(), memory().c_str());
  if (strcmp(argv[1], "idle") == 0) {
    Random random{1};
    for (int number = 0; number < atoi(argv[4]); number++)
      for (auto& db : databases) db.put(key_of(uint32_t(number)), value_of(random, 100));
    printf("%s entries in each: %s\n", argv[4], memory().c_str());
  } else {
    mixed(databases, atoi(argv[4]), argc > 5 ? atoi(argv[5]) : 4);
  }
  for (auto& db : databases) db.close();
  return 0;
}
