// Observable behaviour of options and components of the program's own. Compiled
// once against Debian's headers and run against both libraries: the outputs must be the same.
// Argument: an empty directory.
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/env.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace leveldb;

static std::string root;

static std::string Kind(const Status& s) {
  const std::string text = s.ToString();
  return text.substr(0, text.find(':'));
}

static void Check(const Status& s) {
  if (s.ok()) return;
  fprintf(stderr, "%s\n", s.ToString().c_str());
  abort();
}

static std::unique_ptr<DB> Open(const Options& options, const std::string& name) {
  DB* db = nullptr;
  Check(DB::Open(options, name, &db));
  return std::unique_ptr<DB>(db);
}

static std::string Key(int i) {
  char key[16];
  snprintf(key, sizeof(key), "key%06d", i);
  return key;
}

// Bytes that no compression shortens.
static std::string Noise(int seed, size_t size) {
  std::string bytes(size, '\0');
  uint64_t state = static_cast<uint64_t>(seed) * 0x9E3779B97F4A7C15u + 1;
  for (char& byte : bytes) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    byte = static_cast<char>(state);
  }
  return bytes;
}

static std::vector<std::string> FilesOf(const std::string& name, const std::string& ending) {
  std::vector<std::string> all, found;
  Env::Default()->GetChildren(name, &all);
  for (const std::string& file : all) {
    if (file.size() > ending.size() &&
        file.compare(file.size() - ending.size(), std::string::npos, ending) == 0) {
      found.push_back(file);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Changes one byte of a file.
static void Flip(const std::string& file, size_t at) {
  std::string bytes;
  Check(ReadFileToString(Env::Default(), file, &bytes));
  bytes[at] ^= 1;
  Check(WriteStringToFile(Env::Default(), bytes, file));
}

// ---- A cache of the program's own ----

// Counts, and passes everything on.
class CountingCache : public Cache {
 public:
  std::atomic<int> ids{0}, inserts{0}, lookups{0}, hits{0}, releases{0}, erases{0}, values{0};
  std::atomic<size_t> charged{0}, key_size{0};

  Handle* Insert(const Slice& key, void* value, size_t charge,
                 void (*deleter)(const Slice&, void*)) override {
    inserts++;
    charged += charge;
    key_size = key.size();
    return cache_->Insert(key, value, charge, deleter);
  }
  Handle* Lookup(const Slice& key) override {
    lookups++;
    Handle* handle = cache_->Lookup(key);
    hits += handle != nullptr;
    return handle;
  }
  void Release(Handle* handle) override {
    releases++;
    cache_->Release(handle);
  }
  void* Value(Handle* handle) override {
    values++;
    return cache_->Value(handle);
  }
  void Erase(const Slice& key) override {
    erases++;
    cache_->Erase(key);
  }
  uint64_t NewId() override {
    ids++;
    return cache_->NewId();
  }
  void Prune() override { cache_->Prune(); }
  size_t TotalCharge() const override { return cache_->TotalCharge(); }

  void Show(const char* when) {
    printf(
        "%s: ids %d, lookups %d, hits %d, inserts %d of %zu bytes, in use %d, erased %d, total "
        "%zu, values %d\n",
        when, ids.load(), lookups.load(), hits.load(), inserts.load(), charged.load(),
        inserts + hits - releases, erases.load(), TotalCharge(), values == hits);
  }

 private:
  std::unique_ptr<Cache> cache_{NewLRUCache(1 << 20)};
};

static void Caches() {
  printf("-- a cache of the program's own\n");
  const std::string name = root + "/cache";
  Options options;
  options.create_if_missing = true;
  {
    std::unique_ptr<DB> db = Open(options, name);
    for (int i = 0; i < 3000; i++)
      Check(db->Put(WriteOptions(), Key(i), std::string(100, 'a' + i % 26)));
    db->CompactRange(nullptr, nullptr);
  }
  CountingCache cache;
  options.block_cache = &cache;
  {
    std::unique_ptr<DB> db = Open(options, name);
    cache.Show("opened");
    std::string value;
    Check(db->Get(ReadOptions(), Key(1000), &value));
    cache.Show("one value");
    Check(db->Get(ReadOptions(), Key(1001), &value));
    cache.Show("its neighbour");
    printf("key of %zu bytes\n", cache.key_size.load());
    printf("absent %s\n", Kind(db->Get(ReadOptions(), "a", &value)).c_str());
    ReadOptions scan;
    scan.fill_cache = false;
    std::unique_ptr<Iterator> it(db->NewIterator(scan));
    int entries = 0;
    for (it->SeekToFirst(); it->Valid(); it->Next()) entries++;
    it.reset();
    printf("%d entries\n", entries);
    const int inserted = cache.inserts;
    printf("without fill_cache inserted %d\n", inserted - cache.inserts);
    it.reset(db->NewIterator(ReadOptions()));
    it->Seek(Key(2000));
    printf("held by an iterator: %d\n", cache.inserts + cache.hits - cache.releases);
    for (it->SeekToFirst(); it->Valid(); it->Next()) entries++;
    it.reset();
    cache.Show("scanned");
    it.reset(db->NewIterator(ReadOptions()));
    for (it->SeekToLast(); it->Valid(); it->Prev()) entries++;
    it.reset();
    cache.Show("scanned again");
    printf("%d entries\n", entries);
    cache.Prune();
    printf("pruned: %zu\n", cache.TotalCharge());
    Check(db->Get(ReadOptions(), Key(1), &value));
    std::string memory;
    db->GetProperty("leveldb.approximate-memory-usage", &memory);
    printf("in the property %d\n", std::stoull(memory) >= cache.TotalCharge());
  }
  cache.Show("closed");
  {
    // The next one takes other numbers, so that it does not find the blocks of before.
    std::unique_ptr<DB> db = Open(options, name);
    std::string value;
    Check(db->Get(ReadOptions(), Key(1), &value));
  }
  cache.Show("opened again");
  // Two databases share it.
  Options other = options;
  std::unique_ptr<DB> first = Open(options, name), second = Open(other, name + "2");
  for (int i = 0; i < 100; i++) Check(second->Put(WriteOptions(), Key(i), "another"));
  second->CompactRange(nullptr, nullptr);
  for (int round = 0; round < 2; round++) {
    std::string a, b;
    Check(first->Get(ReadOptions(), Key(5), &a));
    Check(second->Get(ReadOptions(), Key(5), &b));
    printf("%s %s\n", a.substr(0, 4).c_str(), b.c_str());
  }
}

// ---- A logger of the program's own ----

class CountingLogger : public Logger {
 public:
  std::atomic<int> lines{0};
  void Logv(const char* format, std::va_list ap) override {
    char line[1000];
    vsnprintf(line, sizeof(line), format, ap);
    lines++;
  }
};

static void Loggers() {
  printf("-- info_log\n");
  Options options;
  options.create_if_missing = true;
  CountingLogger logger;
  options.info_log = &logger;
  const std::string name = root + "/logged";
  int before;
  {
    std::unique_ptr<DB> db = Open(options, name);
    Check(db->Put(WriteOptions(), "a", "b"));
    before = logger.lines;
    db->CompactRange(nullptr, nullptr);
  }
  printf("lines at open %d, of a compaction %d, LOG %zu\n", before > 0, logger.lines > before,
         FilesOf(name, "LOG").size());
  before = logger.lines;
  Check(RepairDB(name, options));
  printf("LOG after repair %zu\n", FilesOf(name, "LOG").size());
  options.info_log = nullptr;
  { Open(options, name); }
  { Open(options, name); }
  printf("by default LOG %d, LOG.old %d\n", Env::Default()->FileExists(name + "/LOG"),
         Env::Default()->FileExists(name + "/LOG.old"));
}

// ---- Environments of the program's own ----

// One thread for everything, first come first served.
class OneThreadEnv : public EnvWrapper {
 public:
  explicit OneThreadEnv(Env* base) : EnvWrapper(base), thread_([this] { Run(); }) {}
  ~OneThreadEnv() override {
    {
      std::lock_guard<std::mutex> guard(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  std::atomic<int> jobs{0}, tables_open{0}, flushes_within{0}, appendable{0}, loggers{0},
      asked_for_size{0};

  void Schedule(void (*function)(void*), void* argument) override {
    jobs++;
    std::lock_guard<std::mutex> guard(mutex_);
    queue_.emplace_back(function, argument);
    wake_.notify_all();
  }

  Status NewAppendableFile(const std::string& name, WritableFile** result) override {
    appendable++;
    return Env::NewAppendableFile(name, result);
  }

  Status NewLogger(const std::string& name, Logger** result) override {
    loggers++;
    return target()->NewLogger(name, result);
  }

  Status NewWritableFile(const std::string& name, WritableFile** result) override {
    Status status = target()->NewWritableFile(name, result);
    const bool is_table = name.size() > 4 && name.compare(name.size() - 4, 4, ".ldb") == 0;
    if (status.ok() && is_table && std::this_thread::get_id() == thread_.get_id()) {
      if (tables_open++ > 0) flushes_within++;
      *result = new TableFile(this, *result);
    }
    return status;
  }

 private:
  struct TableFile : public WritableFile {
    TableFile(OneThreadEnv* env, WritableFile* target) : env_(env), target_(target) {}
    ~TableFile() override {
      env_->tables_open--;
      delete target_;
    }
    Status Append(const Slice& data) override { return target_->Append(data); }
    Status Close() override { return target_->Close(); }
    Status Flush() override { return target_->Flush(); }
    Status Sync() override { return target_->Sync(); }
    OneThreadEnv* env_;
    WritableFile* target_;
  };

  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return ended_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const auto [function, argument] = queue_.front();
      queue_.pop_front();
      lock.unlock();
      function(argument);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::pair<void (*)(void*), void*>> queue_;
  bool ended_ = false;
  std::thread thread_;
};

static void OneThread() {
  printf("-- an environment with one background thread\n");
  OneThreadEnv env(Env::Default());
  Options options;
  options.create_if_missing = true;
  options.env = &env;
  options.write_buffer_size = 64 << 10;
  options.reuse_logs = true;
  const std::string name = root + "/one";
  std::unique_ptr<DB> db = Open(options, name), beside = Open(options, name + "2");
  int written = 0;
  // Until a memtable was flushed in the middle of a compaction.
  while (written < 1000000 && (env.flushes_within == 0 || written < 20000)) {
    Check(db->Put(WriteOptions(), Key(written * 7919 % 100003), Noise(written, 100)));
    if (written++ % 10 == 0) Check(beside->Put(WriteOptions(), Key(written), "beside"));
  }
  printf("flushes did not wait for compactions: %d\n", env.flushes_within > 0);
  db->CompactRange(nullptr, nullptr);
  std::string value;
  Check(db->Get(ReadOptions(), Key(7919), &value));
  printf("as written %d\n", value == Noise(1, 100));
  db.reset();
  beside.reset();
  // Files cannot be appended to: a new log, whatever reuse_logs says.
  db = Open(options, name);
  Check(db->Get(ReadOptions(), Key(7919), &value));
  printf("as written %d\n", value == Noise(1, 100));
  Check(db->Put(WriteOptions(), "more", "1"));
  db.reset();
  db = Open(options, name);
  Check(db->Get(ReadOptions(), "more", &value));
  db.reset();
  printf("jobs %d, loggers %d, asked to append %d\n", env.jobs > 0, env.loggers > 0,
         env.appendable > 0);
  // Unchanged calls of the wrapped environment.
  std::atomic<int> ran{0};
  env.StartThread([](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &ran);
  while (ran == 0) env.SleepForMicroseconds(100);
  std::string mine, theirs;
  Check(env.GetTestDirectory(&mine));
  Check(Env::Default()->GetTestDirectory(&theirs));
  printf("the same test directory %d\n", mine == theirs);
}

// ---- Options ----

static void FileSizes() {
  printf("-- max_file_size\n");
  for (const size_t size : {size_t{1} << 20, size_t{4} << 20}) {
    const std::string name = root + "/sizes" + std::to_string(size);
    Options options;
    options.create_if_missing = true;
    options.compression = kNoCompression;
    options.write_buffer_size = 1 << 20;
    options.max_file_size = size;
    std::unique_ptr<DB> db = Open(options, name);
    for (int i = 0; i < 12000; i++)
      Check(db->Put(WriteOptions(), Key(i * 7919 % 12007), Noise(i, 1000)));
    db->CompactRange(nullptr, nullptr);
    db.reset();
    uint64_t largest = 0, bytes = 0;
    for (const std::string& file : FilesOf(name, ".ldb")) {
      Check(Env::Default()->GetFileSize(name + "/" + file, &bytes));
      largest = std::max(largest, bytes);
    }
    printf("%zu: largest within %d, and not far below %d\n", size,
           largest<size + size / 10, largest> size / 2);
  }
}

static void Logs() {
  printf("-- reuse_logs\n");
  WriteOptions sync;
  sync.sync = true;
  for (const bool reuse : {false, true}) {
    const std::string name = root + "/reuse" + std::to_string(reuse);
    Options options;
    options.create_if_missing = true;
    options.reuse_logs = reuse;
    {
      std::unique_ptr<DB> db = Open(options, name);
      Check(db->Put(sync, "first", "1"));
    }
    const std::vector<std::string> before = FilesOf(name, ".log");
    {
      std::unique_ptr<DB> db = Open(options, name);
      Check(db->Put(sync, "second", "2"));
    }
    printf("reuse_logs %d: the same log %d\n", reuse, before == FilesOf(name, ".log"));
    std::unique_ptr<DB> db = Open(options, name);
    std::string first, second;
    Check(db->Get(ReadOptions(), "first", &first));
    Check(db->Get(ReadOptions(), "second", &second));
    printf("%s %s\n", first.c_str(), second.c_str());
  }
}

static void Checks() {
  printf("-- paranoid_checks\n");
  for (const bool paranoid : {false, true}) {
    const std::string name = root + "/paranoid" + std::to_string(paranoid);
    Options options;
    options.create_if_missing = true;
    {
      std::unique_ptr<DB> db = Open(options, name);
      for (int i = 0; i < 10; i++) Check(db->Put(WriteOptions(), Key(i), std::string(100, 'v')));
    }
    const std::string log = name + "/" + FilesOf(name, ".log").back();
    uint64_t size;
    Check(Env::Default()->GetFileSize(log, &size));
    Flip(log, size - 1);
    options.paranoid_checks = paranoid;
    DB* db = nullptr;
    const Status status = DB::Open(options, name, &db);
    printf("paranoid %d: %s\n", paranoid, Kind(status).c_str());
    if (status.ok()) {
      std::string value;
      printf("first %s\n", Kind(db->Get(ReadOptions(), Key(0), &value)).c_str());
      printf("last %s\n", Kind(db->Get(ReadOptions(), Key(9), &value)).c_str());
    }
    delete db;
  }
  printf("-- verify_checksums\n");
  const std::string name = root + "/verify";
  Options options;
  options.create_if_missing = true;
  options.compression = kNoCompression;
  {
    std::unique_ptr<DB> db = Open(options, name);
    for (int i = 0; i < 1000; i++) Check(db->Put(WriteOptions(), Key(i), std::string(100, 'v')));
    db->CompactRange(nullptr, nullptr);
  }
  Flip(name + "/" + FilesOf(name, ".ldb").back(), 60);
  std::unique_ptr<DB> db = Open(options, name);
  ReadOptions verify;
  verify.verify_checksums = true;
  std::string value;
  printf("damaged block %s\n", Kind(db->Get(verify, Key(0), &value)).c_str());
  printf("another block %s\n", Kind(db->Get(verify, Key(999), &value)).c_str());
  std::unique_ptr<Iterator> it(db->NewIterator(verify));
  it->SeekToFirst();
  printf("scan %s\n", Kind(it->status()).c_str());
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  root = argv[1];
  Caches();
  Loggers();
  OneThread();
  FileSizes();
  Logs();
  Checks();
  return 0;
}
