// Calls that no careful program makes, and calls of many threads. Compiled with AddressSanitizer
// and run against our library; tools/sanitize has library and engine instrumented too. Argument: an
// empty directory. With "address" or "thread" after it the program does what that sanitizer must
// report, in the engine's code, to show that it is awake.
#include <leveldb/c.h>
#include <leveldb/cache.h>
#include <leveldb/comparator.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define CHECK(condition)                                      \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      abort();                                                \
    }                                                         \
  } while (0)

using namespace leveldb;

static void NullsInC(const std::string& root) {
  char* err = nullptr;
  CHECK(leveldb_open(nullptr, "x", &err) == nullptr && err != nullptr);
  leveldb_options_t* options = leveldb_options_create();
  // The message of before is freed.
  CHECK(leveldb_open(options, nullptr, &err) == nullptr && err != nullptr);
  CHECK(leveldb_open(options, (root + "/none").c_str(), nullptr) == nullptr);
  leveldb_put(nullptr, nullptr, nullptr, 0, nullptr, 0, &err);
  leveldb_put(nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr);
  size_t length = 9;
  CHECK(leveldb_get(nullptr, nullptr, "k", 1, &length, &err) == nullptr && length == 0);
  leveldb_free(err);
  err = nullptr;
  leveldb_close(nullptr);
  leveldb_iter_destroy(nullptr);
  CHECK(!leveldb_iter_valid(nullptr));
  leveldb_iter_next(nullptr);
  CHECK(leveldb_iter_key(nullptr, &length) != nullptr && length == 0);
  leveldb_iter_get_error(nullptr, &err);
  leveldb_writebatch_destroy(nullptr);
  leveldb_writebatch_put(nullptr, "k", 1, "v", 1);
  leveldb_options_destroy(nullptr);
  leveldb_comparator_destroy(nullptr);
  leveldb_filterpolicy_destroy(nullptr);
  leveldb_cache_destroy(nullptr);
  leveldb_env_destroy(nullptr);
  leveldb_release_snapshot(nullptr, nullptr);
  leveldb_compact_range(nullptr, nullptr, 0, nullptr, 0);
  CHECK(leveldb_property_value(nullptr, nullptr) == nullptr);
  CHECK(err == nullptr);

  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t* db = leveldb_open(options, (root + "/nulls").c_str(), &err);
  CHECK(err == nullptr);
  leveldb_options_destroy(options);
  leveldb_put(db, nullptr, nullptr, 0, nullptr, 0, &err);
  CHECK(err == nullptr);
  char* value = leveldb_get(db, nullptr, "", 0, nullptr, &err);
  CHECK(value != nullptr && err == nullptr);
  leveldb_free(value);
  leveldb_write(db, nullptr, nullptr, &err);
  CHECK(err != nullptr);
  leveldb_free(err);
  err = nullptr;
  leveldb_iterator_t* it = leveldb_create_iterator(db, nullptr);
  leveldb_iter_next(it);
  leveldb_iter_prev(it);
  CHECK(!leveldb_iter_valid(it));
  leveldb_iter_seek(it, nullptr, 0);
  CHECK(leveldb_iter_valid(it));
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "a", 1, "b", 1);
  leveldb_writebatch_append(batch, batch);
  leveldb_writebatch_iterate(batch, nullptr, nullptr, nullptr);
  leveldb_write(db, nullptr, batch, &err);
  leveldb_writebatch_destroy(batch);
  CHECK(err == nullptr);
  leveldb_iter_destroy(it);
  leveldb_close(db);
}

// Lengths that LevelDB's 32 bits cannot hold. The memory is never touched, so it costs nothing.
static void HugeLengths(const std::string& root) {
  const size_t size = (size_t{1} << 32) + 5;
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  const Slice huge(static_cast<const char*>(memory), size);
  Options options;
  options.create_if_missing = true;
  DB* db;
  CHECK(DB::Open(options, root + "/huge", &db).ok());
  CHECK(db->Put(WriteOptions(), huge, "v").IsInvalidArgument());
  CHECK(db->Put(WriteOptions(), "k", huge).IsInvalidArgument());
  CHECK(db->Delete(WriteOptions(), huge).IsInvalidArgument());
  WriteBatch batch;
  batch.Put("before", "1");
  batch.Put("k", huge);
  batch.Put("after", "2");
  CHECK(db->Write(WriteOptions(), &batch).IsInvalidArgument());
  WriteBatch copy(batch), appended;
  appended.Append(copy);
  CHECK(db->Write(WriteOptions(), &appended).IsInvalidArgument());
  std::string value;
  CHECK(db->Get(ReadOptions(), "before", &value).IsNotFound());
  batch.Clear();
  batch.Put("before", "1");
  CHECK(db->Write(WriteOptions(), &batch).ok());
  // Bytes that are no batch.
  std::string* rep = reinterpret_cast<std::string*>(&batch);
  for (const std::string& bytes :
       {std::string(), std::string("x"), std::string(12, '\xff'), std::string(40, '\1')}) {
    *rep = bytes;
    CHECK(!db->Write(WriteOptions(), &batch).ok());
  }
  delete db;
  munmap(memory, size);
}

static void ManyThreads(const std::string& root) {
  Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 10;
  options.block_cache = NewLRUCache(100 << 10);
  options.filter_policy = NewBloomFilterPolicy(10);
  DB* db;
  CHECK(DB::Open(options, root + "/threads", &db).ok());
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; t++) {
    threads.emplace_back([=, &failures] {
      for (int i = 0; i < 300; i++) {
        const std::string key = std::to_string(t) + "/" + std::to_string(i);
        if (!db->Put(WriteOptions(), key, std::string(100, 'a' + t)).ok()) failures++;
        std::string value;
        if (!db->Get(ReadOptions(), key, &value).ok() || value != std::string(100, 'a' + t))
          failures++;
        if (i % 100 == 99) {
          ReadOptions at;
          at.snapshot = db->GetSnapshot();
          Iterator* it = db->NewIterator(at);
          int mine = 0;
          const std::string prefix = std::to_string(t) + "/";
          for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) mine++;
          if (mine != i + 1 || !it->status().ok()) failures++;
          delete it;
          db->ReleaseSnapshot(at.snapshot);
        }
        if (i == 150 && t % 4 == 0) db->CompactRange(nullptr, nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  // An iterator that is older than everything that follows.
  Iterator* old = db->NewIterator(ReadOptions());
  for (int i = 0; i < 2000; i++)
    db->Put(WriteOptions(), "later" + std::to_string(i), std::string(100, 'x'));
  db->CompactRange(nullptr, nullptr);
  int count = 0;
  for (old->SeekToFirst(); old->Valid(); old->Next()) count++;
  CHECK(count == 16 * 300);
  delete old;
  delete db;
  // Files that LevelDB leaves alone may be gone.
  delete options.block_cache;
  delete options.filter_policy;
  CHECK(DestroyDB(root + "/threads", options).ok());
}

// Snapshots taken twice, released in any order and by other threads, with iterators that outlive
// them.
static void Snapshots(const std::string& root) {
  Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 10;
  DB* db;
  CHECK(DB::Open(options, root + "/snapshots", &db).ok());
  CHECK(db->Put(WriteOptions(), "k", "first").ok());
  const Snapshot *one = db->GetSnapshot(), *same = db->GetSnapshot();
  CHECK(one != same);
  ReadOptions at;
  at.snapshot = one;
  Iterator* it = db->NewIterator(at);
  std::thread([&] { db->ReleaseSnapshot(one); }).join();
  for (int i = 0; i < 3000; i++)
    CHECK(db->Put(WriteOptions(), "k" + std::to_string(i % 7), std::string(100, 'x')).ok());
  CHECK(db->Put(WriteOptions(), "k", "second").ok());
  db->CompactRange(nullptr, nullptr);
  at.snapshot = same;
  std::string value;
  CHECK(db->Get(at, "k", &value).ok() && value == "first");
  db->ReleaseSnapshot(same);
  it->SeekToLast();
  CHECK(it->Valid() && it->key() == "k" && it->value() == "first");
  std::thread([&] {
    it->Next();
    CHECK(!it->Valid() && it->status().ok());
    it->SeekToFirst();
    CHECK(it->Valid() && it->value() == "first");
    delete it;
  }).join();
  // A value goes into a string of any state, its own included.
  for (const size_t before : {0, 3, 15, 16, 100, 5000}) {
    value.assign(before, 'y');
    CHECK(db->Get(ReadOptions(), "k", &value).ok() && value == "second");
    CHECK(db->Get(ReadOptions(), "k3", &value).ok() && value == std::string(100, 'x'));
    std::string key = "k3";
    CHECK(db->Get(ReadOptions(), key, &key).ok() && key == std::string(100, 'x'));
  }
  CHECK(db->Put(WriteOptions(), "empty", "").ok());
  CHECK(db->Get(ReadOptions(), "empty", &value).ok() && value.empty());
  delete db;
}

// Makes mistakes that only a sanitizer sees.
static int Forbidden(const std::string& kind) {
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_options_t* options = leveldb_options_create();
  if (kind == "address") {
    char* key = static_cast<char*>(malloc(8));
    memset(key, 'k', 8);
    leveldb_writebatch_put(batch, key, 16, "v", 1);
    free(key);
  } else {
    auto set = [options] { leveldb_options_set_create_if_missing(options, 1); };
    std::thread one(set), two(set);
    one.join();
    two.join();
  }
  leveldb_options_destroy(options);
  leveldb_writebatch_destroy(batch);
  puts("unnoticed");
  return 0;
}

// A child that opens a database after its parent used one, daemon-like, and leaves without closing.
static void Forks(const std::string& root) {
  Options options;
  options.create_if_missing = true;
  DB* mine;
  CHECK(DB::Open(options, root + "/parent", &mine).ok());
  CHECK(mine->Put(WriteOptions(), "k", "v").ok());
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    DB* other;
    if (!DB::Open(options, root + "/child", &other).ok()) _exit(1);
    if (!other->Put(WriteOptions(), "left", "open").ok()) _exit(2);
    other->CompactRange(nullptr, nullptr);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  DB* found;
  CHECK(DB::Open(options, root + "/child", &found).ok());
  std::string value;
  CHECK(found->Get(ReadOptions(), "left", &value).ok() && value == "open");
  delete found;
  CHECK(mine->Put(WriteOptions(), "k", "w").ok());
  delete mine;
}

int main(int argc, char** argv) {
  if (argc == 3) return Forbidden(argv[2]);
  if (argc != 2) return 2;
  NullsInC(argv[1]);
  HugeLengths(argv[1]);
  ManyThreads(argv[1]);
  Snapshots(argv[1]);
  Forks(argv[1]);
  // Left open on purpose: the process ends with background threads.
  Options options;
  options.create_if_missing = true;
  static DB* left;
  CHECK(DB::Open(options, std::string(argv[1]) + "/left", &left).ok());
  CHECK(left->Put(WriteOptions(), "k", "v").ok());
  puts("survived");
  return 0;
}
