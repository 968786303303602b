// An environment of the program's own that fails at every k-th call, whatever the call: nothing
// crashes, nothing waits for ever, and what was acknowledged is there when the database is opened
// without faults. Only our library passes: LevelDB acknowledges writes after a failed one and loses
// them. Argument: an empty directory.
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/helpers/memenv.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

using namespace leveldb;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "every %d: line %d: %s\n", every, __LINE__, #condition); \
      abort();                                                                 \
    }                                                                          \
  } while (0)

static int every = 0;

class FaultyEnv : public EnvWrapper {
 public:
  explicit FaultyEnv(Env* base) : EnvWrapper(base) {}

  // From the next call on, one of so many fails; 0 for none.
  void FailEvery(int calls) {
    every_ = calls;
    count_ = 0;
  }
  int failures() const { return failures_; }

  bool Fails() {
    const int calls = every_;
    if (calls == 0 || ++count_ % calls != 0) return false;
    failures_++;
    return true;
  }

  Status NewSequentialFile(const std::string& f, SequentialFile** r) override {
    return Fails() ? Fail(r) : target()->NewSequentialFile(f, r);
  }
  Status NewRandomAccessFile(const std::string& f, RandomAccessFile** r) override {
    if (Fails()) return Fail(r);
    Status status = target()->NewRandomAccessFile(f, r);
    if (status.ok()) *r = new Random(this, *r);
    return status;
  }
  Status NewWritableFile(const std::string& f, WritableFile** r) override {
    if (Fails()) return Fail(r);
    Status status = target()->NewWritableFile(f, r);
    if (status.ok()) *r = new Writable(this, *r);
    return status;
  }
  Status NewAppendableFile(const std::string& f, WritableFile** r) override {
    if (Fails()) return Fail(r);
    Status status = target()->NewAppendableFile(f, r);
    if (status.ok()) *r = new Writable(this, *r);
    return status;
  }
  Status GetChildren(const std::string& d, std::vector<std::string>* r) override {
    return Fails() ? Fault() : target()->GetChildren(d, r);
  }
  Status RemoveFile(const std::string& f) override {
    return Fails() ? Fault() : target()->RemoveFile(f);
  }
  Status CreateDir(const std::string& d) override {
    return Fails() ? Fault() : target()->CreateDir(d);
  }
  Status RemoveDir(const std::string& d) override {
    return Fails() ? Fault() : target()->RemoveDir(d);
  }
  Status GetFileSize(const std::string& f, uint64_t* s) override {
    return Fails() ? Fault() : target()->GetFileSize(f, s);
  }
  Status RenameFile(const std::string& f, const std::string& t) override {
    return Fails() ? Fault() : target()->RenameFile(f, t);
  }
  Status LockFile(const std::string& f, FileLock** l) override {
    return Fails() ? Fail(l) : target()->LockFile(f, l);
  }
  Status NewLogger(const std::string& f, Logger** l) override {
    return Fails() ? Fail(l) : target()->NewLogger(f, l);
  }

 private:
  static Status Fault() { return Status::IOError("made to fail"); }

  template <typename T>
  static Status Fail(T** result) {
    *result = nullptr;
    return Fault();
  }

  struct Random : public RandomAccessFile {
    Random(FaultyEnv* env, RandomAccessFile* target) : env(env), target(target) {}
    Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const override {
      return env->Fails() ? Fault() : target->Read(offset, n, result, scratch);
    }
    FaultyEnv* env;
    std::unique_ptr<RandomAccessFile> target;
  };

  struct Writable : public WritableFile {
    Writable(FaultyEnv* env, WritableFile* target) : env(env), target(target) {}
    Status Append(const Slice& data) override {
      if (!env->Fails()) return target->Append(data);
      // Some of it arrived.
      target->Append(Slice(data.data(), data.size() / 2));
      return Fault();
    }
    Status Close() override { return env->Fails() ? Fault() : target->Close(); }
    Status Flush() override { return env->Fails() ? Fault() : target->Flush(); }
    // Nothing here asks what survives a power cut, so no disk is made to wait.
    Status Sync() override { return env->Fails() ? Fault() : target->Flush(); }
    FaultyEnv* env;
    std::unique_ptr<WritableFile> target;
  };

  std::atomic<int> every_{0}, count_{0}, failures_{0};
};

static int Round(FaultyEnv* env, const std::string& name) {
  Options options;
  options.create_if_missing = true;
  options.env = env;
  options.write_buffer_size = 64 << 10;
  std::map<std::string, std::string> acknowledged;
  for (int open = 0; open < 4; open++) {
    options.reuse_logs = open % 2 == 1;
    env->FailEvery(every);
    DB* db = nullptr;
    const bool opened = DB::Open(options, name, &db).ok();
    CHECK(opened == (db != nullptr));
    for (int i = 0; opened && i < 300; i++) {
      const std::string key = std::to_string(open) + "/" + std::to_string(i);
      const std::string value(400, static_cast<char>('a' + i % 26));
      WriteOptions write;
      write.sync = i % 7 == 0;
      if (db->Put(write, key, value).ok()) acknowledged[key] = value;
      if (i % 50 == 49) {
        for (const auto& [known, expected] : acknowledged) {
          std::string found;
          const Status status = db->Get(ReadOptions(), known, &found);
          CHECK(!status.IsNotFound());
          CHECK(!status.ok() || found == expected);
        }
      }
      if (i == 150) db->CompactRange(nullptr, nullptr);
    }
    if (opened) {
      std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions()));
      size_t seen = 0;
      for (it->SeekToFirst(); it->Valid(); it->Next())
        seen += acknowledged.count(it->key().ToString());
      CHECK(seen == acknowledged.size() || !it->status().ok());
    }
    delete db;
    env->FailEvery(0);
    Status status = DB::Open(options, name, &db);
    if (!status.ok()) fprintf(stderr, "%s\n", status.ToString().c_str());
    CHECK(status.ok());
    for (const auto& [key, value] : acknowledged) {
      std::string found;
      CHECK(db->Get(ReadOptions(), key, &found).ok() && found == value);
    }
    delete db;
  }
  CHECK(DestroyDB(name, options).ok());
  return static_cast<int>(acknowledged.size());
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::unique_ptr<Env> memory(NewMemEnv(Env::Default()));
  int rounds = 0, acknowledged = 0, failures = 0;
  for (Env* base : {memory.get(), Env::Default()}) {
    FaultyEnv env(base);
    for (every = 1; every < 3000; every += 1 + every / 8) {
      acknowledged += Round(&env, std::string(argv[1]) + "/faulty");
      rounds++;
    }
    failures += env.failures();
  }
  fprintf(stderr, "%d rounds, %d failures, %d writes acknowledged and found\n", rounds, failures,
          acknowledged);
  CHECK(failures > 1000 && acknowledged > 10000);
  puts("survived");
}
