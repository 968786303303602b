// Uses every public class of LevelDB's C++ interface and prints what comes back. Compiled once
// against Debian's headers and run against both libraries: the outputs must be the same. Argument:
// an empty directory.
#include <leveldb/cache.h>
#include <leveldb/comparator.h>
#include <leveldb/db.h>
#include <leveldb/dumpfile.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/helpers/memenv.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>
#include <leveldb/write_batch.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <typeinfo>
#include <vector>

using namespace leveldb;

static std::string root;

static std::string Printable(const Slice& bytes) {
  std::string text = "[";
  for (size_t i = 0; i < bytes.size(); i++) {
    const unsigned char c = bytes[i];
    char escaped[8];
    if (c >= 32 && c < 127)
      text.push_back(c);
    else
      text.append(escaped, snprintf(escaped, sizeof(escaped), "\\x%02x", c));
  }
  return text + "]";
}

// The kind of a status: its words are each library's own.
static std::string Kind(const Status& s) {
  const std::string text = s.ToString();
  return text.substr(0, text.find(':'));
}

static void Show(const char* what, const Status& s) { printf("%s: %s\n", what, Kind(s).c_str()); }
#define SHOW(call) Show(#call, (call))

static void Get(DB* db, const std::string& key, const ReadOptions& options = ReadOptions()) {
  std::string value = "untouched";
  const Status s = db->Get(options, key, &value);
  printf("get %s: %s %s\n", Printable(key).c_str(), s.ToString().c_str(),
         Printable(value.substr(0, 40)).c_str());
}

static void Scan(Iterator* it) {
  printf("scan: fresh %d;", it->Valid());
  int count = 0;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    if (count++ < 12)
      printf(" %s=%s", Printable(it->key()).c_str(),
             Printable(it->value().ToString().substr(0, 12)).c_str());
  }
  printf(" (%d)\n  back:", count);
  count = 0;
  for (it->SeekToLast(); it->Valid(); it->Prev()) {
    if (count++ < 12) printf(" %s", Printable(it->key()).c_str());
  }
  printf(" (%d)\n", count);
  for (const char* target : {"", "b", "key00500", "zzzz"}) {
    it->Seek(target);
    printf("  seek %s: %s", target, it->Valid() ? Printable(it->key()).c_str() : "end");
    if (it->Valid()) {
      it->Prev();
      printf(", before it %s", it->Valid() ? Printable(it->key()).c_str() : "end");
    }
    if (it->Valid()) {
      it->Next();
      printf(", again %s", it->Valid() ? Printable(it->key()).c_str() : "end");
    }
    printf("\n");
  }
  printf("  status %s\n", it->status().ToString().c_str());
}

static void Scan(DB* db, const ReadOptions& options = ReadOptions()) {
  std::unique_ptr<Iterator> it(db->NewIterator(options));
  Scan(it.get());
}

class PrintingHandler : public WriteBatch::Handler {
 public:
  void Put(const Slice& key, const Slice& value) override {
    printf("  put %s %s\n", Printable(key).c_str(), Printable(value).c_str());
  }
  void Delete(const Slice& key) override { printf("  delete %s\n", Printable(key).c_str()); }
};

static void Statuses() {
  printf("-- Status and Slice\n");
  const Status all[] = {Status::OK(),
                        Status::NotFound("a"),
                        Status::Corruption("b", "more"),
                        Status::NotSupported("c"),
                        Status::InvalidArgument("", "d"),
                        Status::IOError("e", "")};
  for (const Status& s : all) {
    Status copy(s), assigned = Status::IOError("replaced");
    assigned = copy;
    Status moved(std::move(copy));
    assigned = assigned;
    printf("%s|%s|%d%d%d%d%d%d|%s\n", s.ToString().c_str(), moved.ToString().c_str(), s.ok(),
           s.IsNotFound(), s.IsCorruption(), s.IsNotSupportedError(), s.IsInvalidArgument(),
           s.IsIOError(), assigned.ToString().c_str());
  }
  const std::string with_zero("a\0b", 3);
  printf("%s\n", Printable(Status::IOError(with_zero, Slice("\xff\0x", 3)).ToString()).c_str());
  printf("%d %d %d\n", Slice("a").compare("b") < 0, Slice("ab").compare("a") > 0,
         Slice("x").starts_with(""));
}

static void Batches() {
  printf("-- WriteBatch\n");
  WriteBatch batch;
  printf("size %zu\n", batch.ApproximateSize());
  batch.Put("key", "value");
  batch.Delete(std::string(200, 'd'));
  batch.Put("", "");
  printf("size %zu\n", batch.ApproximateSize());
  WriteBatch other(batch);
  other.Put("more", std::string("\0\xff", 2));
  batch.Append(other);
  PrintingHandler handler;
  printf("iterate %s, size %zu\n", batch.Iterate(&handler).ToString().c_str(),
         batch.ApproximateSize());
  batch.Clear();
  printf("cleared %s, size %zu\n", batch.Iterate(&handler).ToString().c_str(),
         batch.ApproximateSize());
  // The layout is public: clients read and write the string.
  std::string* rep = reinterpret_cast<std::string*>(&other);
  printf("bytes %s\n", Printable(*rep).c_str());
  std::string good = *rep;
  rep->resize(rep->size() - 1);
  printf("cut: %s\n", other.Iterate(&handler).ToString().c_str());
  *rep = good;
  (*rep)[8]++;
  printf("count: %s\n", other.Iterate(&handler).ToString().c_str());
  *rep = good;
  (*rep)[12] = 7;
  printf("kind: %s\n", other.Iterate(&handler).ToString().c_str());
  *rep = "short";
  printf("short: %s\n", other.Iterate(&handler).ToString().c_str());
}

static int cleaned = 0;
static void Cleanup(void* a, void* b) {
  printf("  cleanup %d %d\n", *static_cast<int*>(a), *static_cast<int*>(b));
  cleaned++;
}

static void Databases() {
  printf("-- DB\n");
  Options options;
  const std::string name = root + "/db";
  DB* db = reinterpret_cast<DB*>(1);
  Status s = DB::Open(options, name, &db);
  printf("missing: %s, null %d, as worded %d\n", Kind(s).c_str(), db == nullptr,
         s.ToString().find("does not exist (create_if_missing is false)") != std::string::npos);
  options.create_if_missing = true;
  SHOW(DB::Open(options, name, &db));
  DB* second = nullptr;
  s = DB::Open(options, name, &second);
  printf("second: %s %d\n", Kind(s).c_str(), second == nullptr);
  printf("is a DB %d, its own type %d\n", dynamic_cast<DB*>(db) != nullptr,
         typeid(*db) != typeid(DB));

  WriteOptions sync, lazy;
  sync.sync = true;
  Get(db, "a");
  SHOW(db->Put(lazy, "a", "1"));
  SHOW(db->Put(sync, "b", std::string("\0\1", 2)));
  SHOW(db->Delete(sync, "nothing"));
  SHOW(db->Delete(lazy, "nothing"));
  SHOW(db->Put(lazy, "", "empty key"));
  // The default implementations of the base class.
  SHOW(db->DB::Put(lazy, "base", "put"));
  SHOW(db->DB::Delete(lazy, "base"));
  WriteBatch batch;
  batch.Put("c", "3");
  batch.Put("d", "4");
  batch.Delete("d");
  SHOW(db->Write(sync, &batch));
  // Write stamps the sequence number into the caller's batch.
  printf("stamped %s\n", Printable(reinterpret_cast<std::string*>(&batch)->substr(0, 12)).c_str());
  SHOW(db->Write(sync, &batch));
  printf("stamped %s\n", Printable(reinterpret_cast<std::string*>(&batch)->substr(0, 12)).c_str());
  WriteBatch empty;
  SHOW(db->Write(lazy, &empty));
  SHOW(db->Write(lazy, nullptr));
  Get(db, "a");
  Get(db, "b");
  Get(db, "d");
  Get(db, "");
  Scan(db);

  const Snapshot* first = db->GetSnapshot();
  db->Put(lazy, "a", "changed");
  const Snapshot* then = db->GetSnapshot();
  db->Delete(lazy, "a");
  ReadOptions at;
  at.verify_checksums = true;
  at.snapshot = first;
  Get(db, "a", at);
  Scan(db, at);
  at.snapshot = then;
  Get(db, "a", at);
  Get(db, "a");
  printf("snapshot is polymorphic %d\n", typeid(*then) != typeid(int));
  Iterator* held = db->NewIterator(at);
  db->ReleaseSnapshot(first);
  db->ReleaseSnapshot(then);
  for (int i = 0; i < 2000; i++) {
    char key[16];
    snprintf(key, sizeof(key), "key%05d", i);
    db->Put(lazy, key, std::string(100, 'a' + i % 26));
  }
  int one = 1, two = 2, three = 3;
  held->RegisterCleanup(Cleanup, &one, &one);
  held->RegisterCleanup(Cleanup, &two, &one);
  held->RegisterCleanup(Cleanup, &three, &two);
  Scan(held);
  delete held;
  printf("cleaned %d\n", cleaned);
  db->CompactRange(nullptr, nullptr);
  const Slice from("key00100"), to("key00200");
  db->CompactRange(&from, &to);
  db->CompactRange(nullptr, &to);
  db->CompactRange(&from, nullptr);
  Scan(db);
  Range ranges[2] = {Range("key00000", "key01000"), Range("x", "y")};
  uint64_t sizes[2] = {7, 7};
  db->GetApproximateSizes(ranges, 2, sizes);
  printf("sizes %s %s\n", sizes[0] > 1000 && sizes[0] < 200000 ? "plausible" : "off",
         sizes[1] == 0 ? "0" : "off");
  for (const char* property :
       {"leveldb.stats", "leveldb.sstables", "leveldb.num-files-at-level0",
        "leveldb.approximate-memory-usage", "leveldb.num-files-at-levelx", "leveldb.", "", "x"}) {
    std::string value = "old";
    const bool known = db->GetProperty(property, &value);
    printf("property %s: %d %s\n", property, known, value.empty() ? "empty" : "text");
  }
  std::string stats;
  db->GetProperty("leveldb.stats", &stats);
  printf("%s\n", stats.substr(0, stats.find("---")).c_str());
  delete db;

  options.error_if_exists = true;
  s = DB::Open(options, name, &db);
  printf("exists: %s, as worded %d\n", Kind(s).c_str(),
         s.ToString().find("exists (error_if_exists is true)") != std::string::npos);
  options.error_if_exists = false;
  options.paranoid_checks = true;
  options.reuse_logs = true;
  options.max_open_files = 1;
  options.write_buffer_size = 1;
  options.block_size = 1;
  options.max_file_size = 1;
  options.compression = kNoCompression;
  SHOW(DB::Open(options, name, &db));
  Get(db, "key00100");
  db->Put(sync, "after", "reopen");
  delete db;
  SHOW(DB::Open(options, name, &db));
  Get(db, "after");
  delete db;
  SHOW(RepairDB(name, options));
  SHOW(DB::Open(options, name, &db));
  Get(db, "key00100");
  Get(db, "after");
  delete db;
  SHOW(DestroyDB(name, options));
  SHOW(DestroyDB(name, options));
}

class Backwards : public Comparator {
 public:
  mutable std::atomic<int> separators{0}, successors{0}, compares{0};
  int Compare(const Slice& a, const Slice& b) const override {
    compares++;
    return -a.compare(b);
  }
  const char* Name() const override { return "transcript.Backwards"; }
  void FindShortestSeparator(std::string*, const Slice&) const override { separators++; }
  void FindShortSuccessor(std::string*) const override { successors++; }
};

class FirstByteFilter : public FilterPolicy {
 public:
  mutable std::atomic<int> made{0}, asked{0}, refused{0};
  const char* Name() const override { return "transcript.FirstByte"; }
  void CreateFilter(const Slice* keys, int n, std::string* dst) const override {
    made++;
    std::set<char> bytes;
    for (int i = 0; i < n; i++) {
      if (!keys[i].empty()) bytes.insert(keys[i][0]);
    }
    dst->append(bytes.begin(), bytes.end());
  }
  bool KeyMayMatch(const Slice& key, const Slice& filter) const override {
    asked++;
    const bool found = key.empty() || memchr(filter.data(), key[0], filter.size()) != nullptr;
    refused += !found;
    return found;
  }
};

class CountingLogger : public Logger {
 public:
  std::atomic<int> lines{0};
  void Logv(const char* format, std::va_list ap) override {
    char line[1000];
    vsnprintf(line, sizeof(line), format, ap);
    lines += line[0] != 0;
  }
};

static void Components() {
  printf("-- Comparator, FilterPolicy, Logger\n");
  const Comparator* bytewise = BytewiseComparator();
  std::string key = "abcdef";
  bytewise->FindShortestSeparator(&key, "abxyz");
  std::string successor =
      "\xff\xff"
      "a";
  bytewise->FindShortSuccessor(&successor);
  printf("%s %d %s %s\n", bytewise->Name(), bytewise->Compare("a", "b"), Printable(key).c_str(),
         Printable(successor).c_str());
  std::unique_ptr<const FilterPolicy> bloom(NewBloomFilterPolicy(10));
  std::string filter = "kept";
  const Slice keys[] = {"hello", "world"};
  bloom->CreateFilter(keys, 2, &filter);
  printf("%s %s %d %d %d\n", bloom->Name(), Printable(filter).c_str(),
         bloom->KeyMayMatch("hello", filter.substr(4)), bloom->KeyMayMatch("x", filter.substr(4)),
         bloom->KeyMayMatch("hello", ""));

  Backwards order;
  FirstByteFilter first_byte;
  CountingLogger logger;
  Options options;
  options.create_if_missing = true;
  options.comparator = &order;
  options.filter_policy = &first_byte;
  options.info_log = &logger;
  options.block_size = 1024;
  const std::string name = root + "/custom";
  DB* db;
  SHOW(DB::Open(options, name, &db));
  for (int i = 0; i < 500; i++) {
    char text[16];
    snprintf(text, sizeof(text), "%c%03d", 'a' + 2 * (i % 5), i);
    db->Put(WriteOptions(), text, std::string(50, 'v'));
  }
  Scan(db);
  db->CompactRange(nullptr, nullptr);
  Scan(db);
  Get(db, "a005");
  Get(db, "b000");
  Get(db, "d000");
  delete db;
  printf("called: compare %d, separator %d, successor %d, filter %d %d %d, logger %d\n",
         order.compares > 0, order.separators > 0, order.successors > 0, first_byte.made > 0,
         first_byte.asked > 0, first_byte.refused > 0, logger.lines > 0);
  options.comparator = BytewiseComparator();
  db = nullptr;
  SHOW(DB::Open(options, name, &db));
  options.comparator = &order;
  options.filter_policy = bloom.get();
  SHOW(DB::Open(options, name, &db));
  Get(db, "a005");
  delete db;
  printf("no LOG %d\n", !Env::Default()->FileExists(name + "/LOG"));
  SHOW(DestroyDB(name, options));
}

static std::vector<int> evicted;
static void Evict(const Slice& key, void* value) {
  evicted.push_back(*reinterpret_cast<const int*>(key.data()) * 1000 +
                    static_cast<int>(reinterpret_cast<intptr_t>(value)));
}
static Slice IntKey(const int& n) { return Slice(reinterpret_cast<const char*>(&n), sizeof(n)); }

static void Caches() {
  printf("-- Cache\n");
  for (size_t capacity : {0, 100, 1000}) {
    evicted.clear();
    Cache* cache = NewLRUCache(capacity);
    const uint64_t first_id = cache->NewId();
    printf("ids %llu %llu\n", (unsigned long long)first_id, (unsigned long long)cache->NewId());
    for (int i = 0; i < 300; i++) {
      cache->Release(cache->Insert(IntKey(i), reinterpret_cast<void*>(static_cast<intptr_t>(i % 7)),
                                   1 + i % 3, Evict));
    }
    const int ten = 10, old = 295, extra = 777;
    Cache::Handle* pinned = cache->Lookup(IntKey(old));
    Cache::Handle* early = cache->Lookup(IntKey(ten));
    printf("pinned %d, early %d, charge %zu\n", pinned != nullptr, early != nullptr,
           cache->TotalCharge());
    if (early != nullptr) cache->Release(early);
    if (pinned != nullptr)
      printf("value %d\n", static_cast<int>(reinterpret_cast<intptr_t>(cache->Value(pinned))));
    Cache::Handle* replaced = cache->Insert(IntKey(old), reinterpret_cast<void*>(5), 1, Evict);
    cache->Erase(IntKey(old));
    cache->Erase(IntKey(extra));
    printf("after erase %d\n", cache->Lookup(IntKey(old)) != nullptr);
    cache->Release(replaced);
    if (pinned != nullptr) cache->Release(pinned);
    cache->Prune();
    printf("charge after prune %zu\n", cache->TotalCharge());
    delete cache;
    printf("evicted %zu:", evicted.size());
    for (int e : evicted) printf(" %d", e);
    printf("\n");
  }
  Cache* shared = NewLRUCache(1 << 20);
  Options options;
  options.create_if_missing = true;
  options.block_cache = shared;
  DB* db;
  SHOW(DB::Open(options, root + "/cached", &db));
  for (int i = 0; i < 1000; i++)
    db->Put(WriteOptions(), "key" + std::to_string(i), std::string(100, 'x'));
  db->CompactRange(nullptr, nullptr);
  Scan(db);
  printf("charged %d\n", shared->TotalCharge() > 0);
  shared->Prune();
  Get(db, "key77");
  delete db;
  delete shared;
  SHOW(DestroyDB(root + "/cached", options));
}

static void Files(Env* env, const std::string& dir) {
  printf("-- Env\n");
  SHOW(env->CreateDir(dir));
  SHOW(env->CreateDir(dir));
  const std::string name = dir + "/file", other = dir + "/other";
  printf("exists %d\n", env->FileExists(name));
  uint64_t size = 5;
  Show("size of nothing", env->GetFileSize(name, &size));
  SequentialFile* sequential = nullptr;
  RandomAccessFile* random = nullptr;
  SHOW(env->NewSequentialFile(name, &sequential));
  SHOW(env->NewRandomAccessFile(name, &random));
  printf("null %d %d\n", sequential == nullptr, random == nullptr);
  WritableFile* writable;
  SHOW(env->NewWritableFile(name, &writable));
  SHOW(writable->Append("hello "));
  SHOW(writable->Append(std::string(100000, 'x')));
  SHOW(writable->Flush());
  SHOW(env->GetFileSize(name, &size));
  printf("size %llu\n", (unsigned long long)size);
  SHOW(writable->Append("world"));
  SHOW(writable->Sync());
  SHOW(writable->Close());
  delete writable;
  SHOW(env->NewAppendableFile(name, &writable));
  SHOW(writable->Append("!"));
  SHOW(writable->Close());
  delete writable;
  char scratch[200];
  Slice read;
  SHOW(env->NewSequentialFile(name, &sequential));
  SHOW(sequential->Read(5, &read, scratch));
  printf("%s\n", Printable(read).c_str());
  SHOW(sequential->Skip(100001));
  SHOW(sequential->Read(100, &read, scratch));
  printf("%s\n", Printable(read).c_str());
  SHOW(sequential->Read(100, &read, scratch));
  printf("%s\n", Printable(read).c_str());
  delete sequential;
  SHOW(env->NewRandomAccessFile(name, &random));
  SHOW(random->Read(100006, 3, &read, scratch));
  printf("%s\n", Printable(read).c_str());
  delete random;
  SHOW(WriteStringToFile(env, "short", other));
  std::string data;
  SHOW(ReadFileToString(env, other, &data));
  printf("%s\n", Printable(data).c_str());
  SHOW(ReadFileToString(env, dir + "/none", &data));
  SHOW(env->RenameFile(other, name));
  SHOW(env->RenameFile(other, name));
  SHOW(ReadFileToString(env, name, &data));
  printf("%s\n", Printable(data).c_str());
  std::vector<std::string> children;
  SHOW(env->GetChildren(dir, &children));
  const std::set<std::string> sorted(children.begin(), children.end());
  for (const std::string& child : sorted) {
    if (child != "." && child != "..") printf("child %s\n", child.c_str());
  }
  FileLock* lock = nullptr;
  SHOW(env->LockFile(dir + "/LOCK", &lock));
  SHOW(env->UnlockFile(lock));
  SHOW(env->DeleteFile(name));
  SHOW(env->RemoveFile(name));
  if (env->FileExists(dir + "/LOCK")) env->RemoveFile(dir + "/LOCK");
  SHOW(env->RemoveDir(dir));
  const uint64_t before = env->NowMicros();
  env->SleepForMicroseconds(2000);
  printf("slept %d\n", env->NowMicros() - before >= 2000);
  std::atomic<int> ran{0};
  auto run = [](void* count) { ++*static_cast<std::atomic<int>*>(count); };
  for (int i = 0; i < 5; i++) env->Schedule(run, &ran);
  env->StartThread(run, &ran);
  while (ran < 6) env->SleepForMicroseconds(100);
  printf("ran %d\n", ran.load());
}

static void Environments() {
  Files(Env::Default(), root + "/files");
  Env* env = Env::Default();
  FileLock *lock, *again = nullptr;
  SHOW(env->LockFile(root + "/lock", &lock));
  Show("again", env->LockFile(root + "/lock", &again));
  printf("null %d\n", again == nullptr);
  SHOW(env->UnlockFile(lock));
  std::string dir;
  SHOW(env->GetTestDirectory(&dir));
  printf("%s\n", dir.c_str());
  Logger* logger;
  SHOW(env->NewLogger(root + "/log", &logger));
  auto log = [&](const char* format, ...) {
    std::va_list ap;
    va_start(ap, format);
    logger->Logv(format, ap);
    va_end(ap);
  };
  log("line %d", 1);
  log("%s\n", std::string(2000, 'y').c_str());
  delete logger;
  std::string text;
  ReadFileToString(env, root + "/log", &text);
  int lines = 0;
  for (char c : text) lines += c == '\n';
  printf("logged %d lines, %d\n", lines, text.find("line 1\n") != std::string::npos);
  std::unique_ptr<Env> memory(NewMemEnv(Env::Default()));
  Files(memory.get(), "/in/memory");
  printf("wrapper %d\n", dynamic_cast<EnvWrapper*>(memory.get()) != nullptr);
}

// Counts calls and fails on demand.
class CountingEnv : public EnvWrapper {
 public:
  explicit CountingEnv(Env* target) : EnvWrapper(target) {}
  std::atomic<int> random{0}, writable{0}, jobs{0}, locks{0}, unlocks{0}, loggers{0}, appends{0},
      syncs{0};
  std::atomic<bool> fail_appends{false}, fail_syncs{false};

  struct File : public WritableFile {
    File(CountingEnv* env, WritableFile* target) : env_(env), target_(target) {}
    ~File() override { delete target_; }
    Status Append(const Slice& data) override {
      env_->appends++;
      return env_->fail_appends ? Status::IOError("append", "made to fail") : target_->Append(data);
    }
    Status Close() override { return target_->Close(); }
    Status Flush() override { return target_->Flush(); }
    Status Sync() override {
      env_->syncs++;
      return env_->fail_syncs ? Status::IOError("sync", "made to fail") : target_->Sync();
    }
    CountingEnv* env_;
    WritableFile* target_;
  };

  Status NewWritableFile(const std::string& f, WritableFile** r) override {
    writable++;
    Status s = target()->NewWritableFile(f, r);
    if (s.ok()) *r = new File(this, *r);
    return s;
  }
  Status NewRandomAccessFile(const std::string& f, RandomAccessFile** r) override {
    random++;
    return target()->NewRandomAccessFile(f, r);
  }
  void Schedule(void (*f)(void*), void* a) override {
    jobs++;
    target()->Schedule(f, a);
  }
  Status LockFile(const std::string& f, FileLock** l) override {
    locks++;
    return target()->LockFile(f, l);
  }
  Status UnlockFile(FileLock* l) override {
    unlocks++;
    return target()->UnlockFile(l);
  }
  Status NewLogger(const std::string& f, Logger** l) override {
    loggers++;
    return target()->NewLogger(f, l);
  }
};

static void CustomEnvironments() {
  printf("-- databases in environments of the program's own\n");
  std::unique_ptr<Env> memory(NewMemEnv(Env::Default()));
  for (Env* base : {Env::Default(), memory.get()}) {
    CountingEnv env(base);
    Options options;
    options.create_if_missing = true;
    options.env = &env;
    options.write_buffer_size = 64 << 10;
    const std::string name = root + "/counted";
    DB* db;
    SHOW(DB::Open(options, name, &db));
    for (int i = 0; i < 3000; i++) {
      char key[16];
      snprintf(key, sizeof(key), "key%05d", i);
      db->Put(WriteOptions(), key, std::string(100, 'z'));
    }
    WriteOptions sync;
    sync.sync = true;
    SHOW(db->Put(sync, "synced", "yes"));
    db->CompactRange(nullptr, nullptr);
    Scan(db);
    env.fail_syncs = true;
    Show("failing sync", db->Put(sync, "lost", "?"));
    env.fail_syncs = false;
    delete db;
    options.create_if_missing = false;
    SHOW(DB::Open(options, name, &db));
    Get(db, "synced");
    Get(db, "key00100");
    env.fail_appends = true;
    Show("failing append", db->Put(WriteOptions(), "k", "v"));
    env.fail_appends = false;
    delete db;
    SHOW(DB::Open(options, name, &db));
    Get(db, "key02999");
    delete db;
    printf(
        "went through: random %d, writable %d, jobs %d, locks %d, loggers %d, appends %d, syncs "
        "%d, unlocked %d\n",
        env.random > 0, env.writable > 0, env.jobs > 0, env.locks > 0, env.loggers > 0,
        env.appends > 3000, env.syncs > 0, env.locks == env.unlocks);
    SHOW(RepairDB(name, options));
    SHOW(DB::Open(options, name, &db));
    Get(db, "key02999");
    delete db;
    SHOW(DestroyDB(name, options));
  }
  Options options;
  options.env = memory.get();
  DB* db = nullptr;
  SHOW(DB::Open(options, "/nowhere", &db));
}

// As some environments are: empty files cannot be mapped, what is missing is an IOError,
// directories stay.
class PickyEnv : public EnvWrapper {
 public:
  explicit PickyEnv(Env* target) : EnvWrapper(target) {}
  Status NewRandomAccessFile(const std::string& f, RandomAccessFile** r) override {
    uint64_t size = 0;
    if (target()->GetFileSize(f, &size).ok() && size == 0)
      return Status::IOError(f, "Invalid argument");
    return target()->NewRandomAccessFile(f, r);
  }
  Status GetChildren(const std::string& d, std::vector<std::string>* r) override {
    const Status s = target()->GetChildren(d, r);
    return s.ok() ? s : Status::IOError(d, "missing");
  }
  Status RemoveDir(const std::string& d) override { return Status::IOError(d, "busy"); }
};

static void Places() {
  printf("-- locks, and directories that stay\n");
  PickyEnv env(Env::Default());
  Options options;
  options.create_if_missing = true;
  options.env = &env;
  const std::string name = root + "/picky";
  SHOW(DestroyDB(name, options));
  for (int round = 0; round < 3; round++) {
    DB *db = nullptr, *second = nullptr;
    SHOW(DB::Open(options, name, &db));
    const Status s = DB::Open(options, name, &second);
    printf("second: %.15s already held by process %d\n", s.ToString().c_str(),
           s.ToString().find("already held by process") != std::string::npos);
    if (round == 1) SHOW(db->Put(WriteOptions(), "k", "v"));
    delete db;
  }
  SHOW(DestroyDB(name, options));
  printf("CURRENT %d\n", Env::Default()->FileExists(name + "/CURRENT"));
  options.env = Env::Default();
  DB* db = nullptr;
  SHOW(DB::Open(options, name, &db));
  delete db;
  const std::string link = root + "/link";
  printf("linked %d\n", symlink(name.c_str(), link.c_str()));
  SHOW(DestroyDB(link, options));
  printf("CURRENT %d\n", Env::Default()->FileExists(name + "/CURRENT"));
}

static void Tables() {
  printf("-- Table and TableBuilder\n");
  Env* env = Env::Default();
  Options options;
  options.block_size = 512;
  options.compression = kNoCompression;
  std::unique_ptr<const FilterPolicy> bloom(NewBloomFilterPolicy(10));
  options.filter_policy = bloom.get();
  const std::string name = root + "/table";
  WritableFile* file;
  SHOW(env->NewWritableFile(name, &file));
  {
    TableBuilder builder(options, file);
    for (int i = 0; i < 1000; i++) {
      char key[16];
      snprintf(key, sizeof(key), "key%05d", i);
      builder.Add(key, std::string(20, 'a' + i % 26));
      if (i == 500) {
        builder.Flush();
        options.block_size = 4096;
        Show("change", builder.ChangeOptions(options));
        Backwards order;
        Options bad = options;
        bad.comparator = &order;
        SHOW(builder.ChangeOptions(bad));
      }
    }
    SHOW(builder.status());
    printf("entries %llu\n", (unsigned long long)builder.NumEntries());
    SHOW(builder.Finish());
    printf("size %llu\n", (unsigned long long)builder.FileSize());
  }
  SHOW(file->Sync());
  SHOW(file->Close());
  delete file;
  std::string bytes;
  ReadFileToString(env, name, &bytes);
  uint32_t sum = 0;
  for (unsigned char c : bytes) sum = sum * 31 + c;
  printf("file of %zu bytes, %08x\n", bytes.size(), sum);

  RandomAccessFile* random;
  SHOW(env->NewRandomAccessFile(name, &random));
  Table* table;
  SHOW(Table::Open(options, random, bytes.size() - 1, &table));
  printf("null %d\n", table == nullptr);
  SHOW(Table::Open(options, random, bytes.size(), &table));
  std::unique_ptr<Iterator> it(table->NewIterator(ReadOptions()));
  Scan(it.get());
  it.reset();
  for (const char* key : {"", "key00300", "key00700", "z"}) {
    printf("offset of %s: %llu\n", key, (unsigned long long)table->ApproximateOffsetOf(key));
  }
  delete table;
  delete random;

  SHOW(env->NewWritableFile(root + "/abandoned", &file));
  {
    TableBuilder builder(options, file);
    builder.Add("a", "b");
    builder.Abandon();
  }
  delete file;
}

static void Iterators() {
  printf("-- Iterator\n");
  std::unique_ptr<Iterator> empty(NewEmptyIterator()),
      broken(NewErrorIterator(Status::Corruption("words")));
  int one = 1, nine = 9;
  empty->RegisterCleanup(Cleanup, &one, &nine);
  empty->SeekToFirst();
  broken->Seek("x");
  printf("%d %s %d %s\n", empty->Valid(), empty->status().ToString().c_str(), broken->Valid(),
         broken->status().ToString().c_str());
}

// Collects in memory.
class StringFile : public WritableFile {
 public:
  std::string text;
  Status Append(const Slice& data) override {
    text.append(data.data(), data.size());
    return Status::OK();
  }
  Status Close() override { return Status::OK(); }
  Status Flush() override { return Status::OK(); }
  Status Sync() override { return Status::OK(); }
};

static void Dumps() {
  printf("-- DumpFile\n");
  Options options;
  options.create_if_missing = true;
  const std::string name = root + "/dumped";
  DB* db;
  DB::Open(options, name, &db);
  db->Put(WriteOptions(), "flushed", "1");
  db->Put(WriteOptions(), std::string("\0key", 4), "\n");
  db->CompactRange(nullptr, nullptr);
  WriteBatch batch;
  batch.Put("logged", "\xff");
  batch.Delete("flushed");
  db->Write(WriteOptions(), &batch);
  delete db;
  std::vector<std::string> children;
  Env::Default()->GetChildren(name, &children);
  for (const std::string& child : std::set<std::string>(children.begin(), children.end())) {
    const size_t dot = child.rfind('.');
    const std::string extension = dot == std::string::npos ? "" : child.substr(dot);
    StringFile out;
    const Status s = DumpFile(Env::Default(), name + "/" + child, &out);
    if (extension == ".log" || extension == ".ldb")
      printf("%s: %s\n%s", extension.c_str(), Kind(s).c_str(), out.text.c_str());
    if (child == "CURRENT") printf("CURRENT: %s\n", Kind(s).c_str());
    if (child.compare(0, 8, "MANIFEST") == 0) {
      printf("MANIFEST: %s, %d\n", Kind(s).c_str(),
             out.text.find("VersionEdit {\n  Comparator: leveldb.BytewiseComparator\n") !=
                 std::string::npos);
    }
  }
  DestroyDB(name, options);
}

// A database of another kind, which derives from LevelDB's.
class NullDB : public DB {
 public:
  Status Put(const WriteOptions& o, const Slice& k, const Slice& v) override {
    return DB::Put(o, k, v);
  }
  Status Delete(const WriteOptions& o, const Slice& k) override { return DB::Delete(o, k); }
  Status Write(const WriteOptions&, WriteBatch* updates) override {
    PrintingHandler handler;
    return updates->Iterate(&handler);
  }
  Status Get(const ReadOptions&, const Slice&, std::string*) override {
    return Status::NotFound("");
  }
  Iterator* NewIterator(const ReadOptions&) override { return NewEmptyIterator(); }
  const Snapshot* GetSnapshot() override { return nullptr; }
  void ReleaseSnapshot(const Snapshot*) override {}
  bool GetProperty(const Slice&, std::string*) override { return false; }
  void GetApproximateSizes(const Range*, int, uint64_t*) override {}
  void CompactRange(const Slice*, const Slice*) override {}
};

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  root = argv[1];
  Statuses();
  Batches();
  Iterators();
  Databases();
  Components();
  Caches();
  Environments();
  CustomEnvironments();
  Places();
  Tables();
  Dumps();
  printf("-- a DB of another kind\n");
  NullDB null;
  SHOW(null.Put(WriteOptions(), "k", "v"));
  SHOW(null.Delete(WriteOptions(), "k"));
  const Options defaults;
  printf("defaults %d %d %d %d %zu %d %zu %d %zu %d %d\n",
         defaults.comparator == BytewiseComparator(), defaults.env == Env::Default(),
         defaults.create_if_missing, defaults.paranoid_checks, defaults.write_buffer_size,
         defaults.max_open_files, defaults.block_size, defaults.block_restart_interval,
         defaults.max_file_size, defaults.compression, defaults.reuse_logs);
  printf("version %d.%d\n", kMajorVersion, kMinorVersion);
  return 0;
}
