// Deletes of large and small ranges.
//
//   bench settled DIR ENTRIES         deletes 99 % of a compacted database, then scans the rest
//   bench unsettled DIR ENTRIES       the same right after the load, before compactions have ended
//   bench writers DIR ENTRIES         the same while two threads put new entries outside the range
//   bench snapshot DIR ENTRIES        deletes 99 % of a compacted database under a snapshot
//   bench small DIR ENTRIES SECONDS   deletes ranges of ten neighbouring keys, one after the other
//   bench middle DIR ENTRIES SECONDS  the same with ranges of 5,000 keys
//
// Built against terrace/c.h, with -DLEVELDB against LevelDB's c.h, whose range delete is a loop of
// an iterator and batches of 1,000 deletions, or with -DROCKSDB against RocksDB's DeleteRange. All
// have a write buffer of 4 MB, Snappy and a cache of 8 MB; every other option has its default.
//
// Keys have 16 bytes, values 100 of which half compress. The entries are put one by one, in random
// order, without sync. The range lies in the middle. A timed scan reads every key and value from
// the first to the last one, the creation of the iterator included. Every step checks which keys
// are left, by their number and a checksum.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#ifdef ROCKSDB
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>
#else
#include <leveldb/c.h>
#ifndef LEVELDB
#include <terrace/c.h>
#endif
#endif

using Clock = std::chrono::steady_clock;

static const size_t write_buffer = 4 << 20, cache_size = 8 << 20;
static const int value_size = 100, scans = 20;
static const uint32_t writer_threads = 2, small_range = 10, middle_range = 5000;

static uint64_t now() {
  auto time = Clock::now().time_since_epoch();
  return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

static void check(bool good, const std::string& what) {
  if (!good) {
    fprintf(stderr, "%s\n", what.c_str());
    exit(1);
  }
}

#ifdef ROCKSDB
static const char* engine = "rocksdb";

using Snapshot = const rocksdb::Snapshot*;

struct Database {
  rocksdb::DB* db = nullptr;

  static void must(const rocksdb::Status& status) { check(status.ok(), status.ToString()); }
  explicit Database(const std::string& path) {
    rocksdb::BlockBasedTableOptions table;
    table.block_cache = rocksdb::NewLRUCache(cache_size);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.error_if_exists = true;
    options.write_buffer_size = write_buffer;
    options.compression = rocksdb::kSnappyCompression;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    must(rocksdb::DB::Open(options, path, &db));
  }
  ~Database() { delete db; }
  Database(const Database&) = delete;
  void put(const char* key, const char* value) {
    must(db->Put({}, rocksdb::Slice(key, 16), rocksdb::Slice(value, value_size)));
  }
  void delete_range(const std::string& from, const std::string& to) {
    must(db->DeleteRange({}, db->DefaultColumnFamily(), from, to));
  }
  void compact() { must(db->CompactRange({}, nullptr, nullptr)); }
  Snapshot snapshot() { return db->GetSnapshot(); }
  void release(Snapshot snapshot) { db->ReleaseSnapshot(snapshot); }
  // The number of entries in tables, tombstones included; -1 if the engine does not tell.
  int64_t table_entries() {
    rocksdb::TablePropertiesCollection tables;
    must(db->GetPropertiesOfAllTables(&tables));
    int64_t entries = 0;
    for (auto& table : tables) entries += int64_t(table.second->num_entries);
    return entries;
  }
};

struct Iterator {
  std::unique_ptr<rocksdb::Iterator> inner;

  explicit Iterator(Database& db, Snapshot snapshot = nullptr) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    inner.reset(db.db->NewIterator(options));
  }
  void seek_to_first() { inner->SeekToFirst(); }
  bool valid() { return inner->Valid(); }
  void next() { inner->Next(); }
  const char* key(size_t* size) {
    rocksdb::Slice key = inner->key();
    *size = key.size();
    return key.data();
  }
  const char* value(size_t* size) {
    rocksdb::Slice value = inner->value();
    *size = value.size();
    return value.data();
  }
  void finish() { Database::must(inner->status()); }
};
#else
#ifdef LEVELDB
static const char* engine = "leveldb";
#else
static const char* engine = "terrace";
#endif

using Snapshot = const leveldb_snapshot_t*;

struct Database {
  leveldb_t* db;
  leveldb_cache_t* cache;
  leveldb_options_t* options;
  leveldb_writeoptions_t* writes = leveldb_writeoptions_create();

  static void must(char* error) { check(error == nullptr, error == nullptr ? "" : error); }
  explicit Database(const std::string& path)
      : cache(leveldb_cache_create_lru(cache_size)), options(leveldb_options_create()) {
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_options_set_error_if_exists(options, 1);
    leveldb_options_set_write_buffer_size(options, write_buffer);
    leveldb_options_set_compression(options, leveldb_snappy_compression);
    leveldb_options_set_cache(options, cache);
    char* error = nullptr;
    db = leveldb_open(options, path.c_str(), &error);
    must(error);
  }
  ~Database() {
    leveldb_close(db);
    leveldb_writeoptions_destroy(writes);
    leveldb_options_destroy(options);
    leveldb_cache_destroy(cache);
  }
  Database(const Database&) = delete;
  void put(const char* key, const char* value) {
    char* error = nullptr;
    leveldb_put(db, writes, key, 16, value, value_size, &error);
    must(error);
  }
  void delete_range(const std::string& from, const std::string& to);
  void compact() { leveldb_compact_range(db, nullptr, 0, nullptr, 0); }
  Snapshot snapshot() { return leveldb_create_snapshot(db); }
  void release(Snapshot snapshot) { leveldb_release_snapshot(db, snapshot); }
  // The number of entries in tables, tombstones included; -1 if the engine does not tell.
  int64_t table_entries() {
#ifdef LEVELDB
    return -1;
#else
    char* error = nullptr;
    terrace_report_t* report = terrace_verify(db, &error);
    must(error);
    check(terrace_report_problems(report) == 0, "a damaged database");
    char* json = terrace_report_json(report);
    const char* entries = strstr(json, "\"entries\":");
    int64_t number =
        entries == nullptr ? -1 : strtoll(entries + strlen("\"entries\":"), nullptr, 10);
    leveldb_free(json);
    terrace_report_destroy(report);
    return number;
#endif
  }
};

struct Iterator {
  leveldb_readoptions_t* options = leveldb_readoptions_create();
  leveldb_iterator_t* inner;

  explicit Iterator(Database& db, Snapshot snapshot = nullptr) {
    leveldb_readoptions_set_snapshot(options, snapshot);
    inner = leveldb_create_iterator(db.db, options);
  }
  ~Iterator() {
    leveldb_iter_destroy(inner);
    leveldb_readoptions_destroy(options);
  }
  Iterator(const Iterator&) = delete;
  void seek_to_first() { leveldb_iter_seek_to_first(inner); }
  void seek(const std::string& key) { leveldb_iter_seek(inner, key.data(), key.size()); }
  bool valid() { return leveldb_iter_valid(inner) != 0; }
  void next() { leveldb_iter_next(inner); }
  const char* key(size_t* size) { return leveldb_iter_key(inner, size); }
  const char* value(size_t* size) { return leveldb_iter_value(inner, size); }
  void finish() {
    char* error = nullptr;
    leveldb_iter_get_error(inner, &error);
    Database::must(error);
  }
};

#ifdef LEVELDB
void Database::delete_range(const std::string& from, const std::string& to) {
  const int batch_size = 1000;
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  int deletions = 0;
  auto write = [&] {
    char* error = nullptr;
    leveldb_write(db, writes, batch, &error);
    must(error);
    leveldb_writebatch_clear(batch);
    deletions = 0;
  };
  Iterator iterator(*this);
  for (iterator.seek(from); iterator.valid(); iterator.next()) {
    size_t size;
    const char* key = iterator.key(&size);
    if (to.compare(0, to.size(), key, size) <= 0) break;
    leveldb_writebatch_delete(batch, key, size);
    if (++deletions == batch_size) write();
  }
  iterator.finish();
  if (deletions > 0) write();
  leveldb_writebatch_destroy(batch);
}
#else
void Database::delete_range(const std::string& from, const std::string& to) {
  char* error = nullptr;
  terrace_delete_range(db, writes, from.data(), from.size(), to.data(), to.size(), &error);
  must(error);
}
#endif
#endif

// Entry `index` of the load has the suffix 0, entries that writers put beside it have others.
static std::string key_of(uint32_t index, uint32_t suffix = 0) {
  char key[32];
  snprintf(key, sizeof key, "%08u%08u", index, suffix);
  return key;
}

// Which keys a database holds.
struct Keys {
  uint64_t count = 0, checksum = 0;

  void add(const char* key) {
    uint64_t halves[2];
    memcpy(halves, key, 16);
    uint64_t mixed = (halves[0] ^ (halves[1] * 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    count++;
    checksum += mixed ^ (mixed >> 32);
  }
  void add(const Keys& other) {
    count += other.count;
    checksum += other.checksum;
  }
  bool operator==(const Keys& other) const {
    return count == other.count && checksum == other.checksum;
  }
};

// The indexes from `first` on and before `limit`.
struct Range {
  uint32_t first, limit;

  uint32_t size() const { return limit - first; }
  // 99 of 100 entries, in the middle.
  static Range most_of(uint32_t entries) {
    uint32_t size = uint32_t(uint64_t(entries) * 99 / 100), first = (entries - size) / 2;
    return {first, first + size};
  }
};

// Values, as many as are asked for, out of a megabyte of them.
struct Values {
  std::mt19937_64 random;
  std::string bytes;
  size_t position = 0;

  explicit Values(uint64_t seed) : random(seed) {
    while (bytes.size() < (1 << 20)) {
      std::string half(value_size / 2, ' ');
      for (auto& byte : half) byte = char(' ' + random() % 95);
      bytes += half + half;
    }
  }
  const char* next() {
    if (position + value_size > bytes.size()) position = 0;
    position += value_size;
    return &bytes[position - value_size];
  }
};

// Puts the entries with these indexes in random order.
static void load(Database& db, std::vector<uint32_t> indexes) {
  Values values(1);
  std::shuffle(indexes.begin(), indexes.end(), values.random);
  for (uint32_t index : indexes) db.put(key_of(index).c_str(), values.next());
}

static std::vector<uint32_t> all_of(uint32_t entries) {
  std::vector<uint32_t> indexes(entries);
  std::iota(indexes.begin(), indexes.end(), 0);
  return indexes;
}

// The indexes of the entries outside of the range.
static std::vector<uint32_t> rest_of(uint32_t entries, Range range) {
  std::vector<uint32_t> indexes = all_of(entries);
  indexes.erase(indexes.begin() + range.first, indexes.begin() + range.limit);
  return indexes;
}

static Keys keys_of(const std::vector<uint32_t>& indexes) {
  Keys keys;
  for (uint32_t index : indexes) keys.add(key_of(index).c_str());
  return keys;
}

static Keys keys_in(Database& db, Snapshot snapshot = nullptr) {
  Keys keys;
  Iterator iterator(db, snapshot);
  for (iterator.seek_to_first(); iterator.valid(); iterator.next()) {
    size_t size, value;
    const char* key = iterator.key(&size);
    iterator.value(&value);
    check(size == 16 && value == value_size, "an entry of another size");
    keys.add(key);
  }
  iterator.finish();
  return keys;
}

// Nanoseconds for each entry of a full scan, which has to find `count`.
static double scan(Database& db, uint64_t count) {
  uint64_t start = now(), found = 0, bytes = 0;
  {
    Iterator iterator(db);
    for (iterator.seek_to_first(); iterator.valid(); iterator.next()) {
      size_t key, value;
      iterator.key(&key);
      const char* last = iterator.value(&value) + value_size - 1;
      bytes += key + value + (*last == '\0');
      found++;
    }
    iterator.finish();
  }
  uint64_t nanos = now() - start;
  check(found == count && bytes == count * (16 + value_size),
        "a scan found " + std::to_string(found) + " entries of " + std::to_string(count));
  return double(nanos) / double(count);
}

static double median_scan(Database& db, uint64_t count) {
  std::vector<double> times;
  for (int round = 0; round < scans; round++) times.push_back(scan(db, count));
  std::sort(times.begin(), times.end());
  return (times[scans / 2 - 1] + times[scans / 2]) / 2;
}

static double megabytes(const std::string& path) {
  uintmax_t bytes = 0;
  for (auto& file : std::filesystem::directory_iterator(path)) {
    std::error_code gone;
    uintmax_t size = file.file_size(gone);
    if (!gone) bytes += size;
  }
  return double(bytes) / 1e6;
}

// Milliseconds that the range delete takes.
static double delete_range(Database& db, Range range) {
  std::string from = key_of(range.first), to = key_of(range.limit);
  uint64_t start = now();
  db.delete_range(from, to);
  return double(now() - start) / 1e6;
}

static void print_delete(const char* step, Range range, uint32_t entries, double millis) {
  printf("%s %s: deleted %u of %u entries in %.1f ms\n", engine, step, range.size(), entries,
         millis);
}

static void must_hold(Database& db, const Keys& expected, Snapshot snapshot = nullptr) {
  Keys found = keys_in(db, snapshot);
  check(found == expected, "found " + std::to_string(found.count) + " keys instead of " +
                               std::to_string(expected.count) + ", or others");
}

// With `settled` the range delete begins after a compaction of everything.
static void rest(const char* step, const std::string& dir, uint32_t entries, bool settled) {
  Range range = Range::most_of(entries);
  std::vector<uint32_t> left = rest_of(entries, range);
  double first, later, fresh;
  {
    Database db(dir + "/db");
    load(db, all_of(entries));
    if (settled) db.compact();
    double before = megabytes(dir + "/db");
    double millis = delete_range(db, range);
    double after = megabytes(dir + "/db");
    first = scan(db, left.size());
    if (!settled) std::this_thread::sleep_for(std::chrono::seconds(1));
    later = median_scan(db, left.size());
    must_hold(db, keys_of(left));
    print_delete(step, range, entries, millis);
    printf("%s %s: on disk %.1f MB before, %.1f MB straight after\n", engine, step, before, after);
  }
  {
    Database db(dir + "/fresh");
    load(db, left);
    db.compact();
    scan(db, left.size());
    fresh = median_scan(db, left.size());
  }
  printf(
      "%s %s: scans of the rest: first %.1f ns an entry, median of %d %s %.1f, in a fresh database "
      "%.1f; ratio "
      "%.2f (first %.2f)\n",
      engine, step, first, scans, settled ? "right behind it" : "after a pause of 1 s", later,
      fresh, later / fresh, first / fresh);
}

struct Put {
  uint64_t start, end;
};

static void print_waits(const char* when, std::vector<uint64_t>& nanos) {
  std::sort(nanos.begin(), nanos.end());
  printf("%s writers: %zu puts %s", engine, nanos.size(), when);
  if (!nanos.empty()) {
    auto at = [&](double part) {
      return double(nanos[size_t(double(nanos.size() - 1) * part)]) / 1e3;
    };
    printf(": p50 %.1f us, p99 %.1f us, p99.9 %.1f us, longest %.1f us", at(0.5), at(0.99),
           at(0.999), at(1));
  }
  printf("\n");
}

static void writers(const std::string& dir, uint32_t entries) {
  Range range = Range::most_of(entries);
  std::vector<uint32_t> left = rest_of(entries, range);
  Database db(dir + "/db");
  load(db, all_of(entries));
  std::atomic<bool> done{false};
  std::atomic<uint32_t> running{0};
  std::vector<Keys> written(writer_threads);
  std::vector<std::vector<Put>> puts(writer_threads);
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < writer_threads; thread++) {
    threads.emplace_back([&, thread] {
      Values values(thread + 2);
      Keys keys;
      for (uint32_t count = 0; !done; count++) {
        check(count < 49000000, "more puts than suffixes");
        uint32_t index = left[values.random() % left.size()];
        std::string key = key_of(index, 1 + thread + writer_threads * count);
        const char* value = values.next();
        uint64_t start = now();
        db.put(key.c_str(), value);
        puts[thread].push_back({start, now()});
        keys.add(key.c_str());
        if (count == 1000) running++;
      }
      written[thread] = keys;
    });
  }
  while (running < writer_threads) std::this_thread::yield();
  uint64_t start = now();
  double millis = delete_range(db, range);
  uint64_t end = now();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  done = true;
  for (auto& thread : threads) thread.join();
  Keys expected = keys_of(left);
  for (auto& keys : written) expected.add(keys);
  must_hold(db, expected);
  std::vector<uint64_t> during, after;
  for (auto& own : puts) {
    for (auto& put : own) {
      if (put.end >= start) (put.start <= end ? during : after).push_back(put.end - put.start);
    }
  }
  print_delete("writers", range, entries, millis);
  print_waits("during the delete", during);
  print_waits("in the second after it", after);
}

static void snapshot(const std::string& dir, uint32_t entries) {
  Range range = Range::most_of(entries);
  Database db(dir + "/db");
  load(db, all_of(entries));
  db.compact();
  Snapshot before = db.snapshot();
  must_hold(db, keys_of(all_of(entries)), before);
  double millis = delete_range(db, range);
  int64_t in_tables = db.table_entries();
  double kept = megabytes(dir + "/db");
  must_hold(db, keys_of(all_of(entries)), before);
  must_hold(db, keys_of(rest_of(entries, range)));
  db.release(before);
  must_hold(db, keys_of(rest_of(entries, range)));
  print_delete("snapshot", range, entries, millis);
  printf("%s snapshot: straight after %.1f MB on disk", engine, kept);
  if (in_tables >= 0)
    printf(", %" PRId64 " entries in the tables of the newest version", in_tables);
  printf("\n");
}

// Ends early, once nine tenths of the entries are deleted.
static void small(const char* step, const std::string& dir, uint32_t entries, int seconds,
                  uint32_t range_keys) {
  Database db(dir + "/db");
  load(db, all_of(entries));
  db.compact();
  std::vector<uint32_t> ranges = all_of(entries / range_keys);
  std::shuffle(ranges.begin(), ranges.end(), std::mt19937_64(3));
  size_t most = ranges.size() * 9 / 10, deleted = 0;
  uint64_t start = now(), limit = uint64_t(seconds) * 1000000000;
  while (deleted < most && now() - start < limit) {
    uint32_t first = ranges[deleted] * range_keys;
    db.delete_range(key_of(first), key_of(first + range_keys));
    deleted++;
  }
  double took = double(now() - start) / 1e9;
  std::vector<bool> gone(entries);
  for (size_t range = 0; range < deleted; range++) {
    for (uint32_t key = 0; key < range_keys; key++) gone[ranges[range] * range_keys + key] = true;
  }
  std::vector<uint32_t> left;
  for (uint32_t index = 0; index < entries; index++) {
    if (!gone[index]) left.push_back(index);
  }
  double first = scan(db, left.size());
  double later = median_scan(db, left.size());
  must_hold(db, keys_of(left));
  printf("%s %s: %zu ranges of %u keys deleted in %.2f s: %.0f a second\n", engine, step,
         deleted, range_keys, took, double(deleted) / took);
  printf(
      "%s %s: scans of the %zu entries left: first %.1f ns an entry, median of %d right behind "
      "it %.1f\n",
      engine, step, left.size(), first, scans, later);
}

int main(int argc, char** argv) {
  check(argc >= 4, "bench settled|unsettled|writers|snapshot|small|middle DIR ENTRIES [SECONDS]");
  std::string step = argv[1], dir = argv[2];
  long long entries = atoll(argv[3]);
  check(entries >= 1000 && entries < 100000000, "1,000 to 99,999,999 entries");
  std::filesystem::create_directories(dir);
  uint32_t count = uint32_t(entries);
  if (step == "settled") {
    rest("settled", dir, count, true);
  } else if (step == "unsettled") {
    rest("unsettled", dir, count, false);
  } else if (step == "writers") {
    writers(dir, count);
  } else if (step == "snapshot") {
    snapshot(dir, count);
  } else if (step == "small") {
    small("small", dir, count, argc > 4 ? atoi(argv[4]) : 5, small_range);
  } else if (step == "middle") {
    small("middle", dir, count, argc > 4 ? atoi(argv[4]) : 5, middle_range);
  } else {
    check(false, "no step " + step);
  }
  return 0;
}
