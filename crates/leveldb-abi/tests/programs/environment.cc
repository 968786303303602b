// Requirements of LevelDB's own tests on environments, directories and damage, which programs may
// count on as well. Prints what happens: the same with both libraries. Argument: an empty
// directory.
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/table.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

using namespace leveldb;

static std::string root;

static std::string Kind(const Status& s) {
  const std::string text = s.ToString();
  return text.substr(0, text.find(':'));
}

#define SHOW(call) printf("%s: %s\n", #call, Kind(call).c_str())

// Counts removals that an environment could refuse: of files that are not there, and of files open
// for writing.
class StrictEnv : public EnvWrapper {
 public:
  explicit StrictEnv(Env* base) : EnvWrapper(base) {}

  Status NewWritableFile(const std::string& f, WritableFile** r) override {
    return Opened(f, target()->NewWritableFile(f, r), r);
  }
  Status NewAppendableFile(const std::string& f, WritableFile** r) override {
    return Opened(f, target()->NewAppendableFile(f, r), r);
  }
  Status RemoveFile(const std::string& f) override {
    std::lock_guard<std::mutex> hold(mutex_);
    absent_ += !target()->FileExists(f);
    open_ += written_.count(f) != 0;
    return target()->RemoveFile(f);
  }
  Status RenameFile(const std::string& f, const std::string& t) override {
    std::lock_guard<std::mutex> hold(mutex_);
    const Status s = target()->RenameFile(f, t);
    if (s.ok() && written_.erase(f) != 0) written_.insert(t);
    return s;
  }

  void Show() {
    printf("removed absent %d, open %d\n", absent_, open_);
    absent_ = open_ = 0;
  }

 private:
  class File : public WritableFile {
   public:
    File(StrictEnv* env, const std::string& name, WritableFile* file)
        : env_(env), name_(name), file_(file) {}
    ~File() override {
      file_.reset();
      std::lock_guard<std::mutex> hold(env_->mutex_);
      env_->written_.erase(name_);
    }
    Status Append(const Slice& data) override { return file_->Append(data); }
    Status Close() override { return file_->Close(); }
    Status Flush() override { return file_->Flush(); }
    Status Sync() override { return file_->Sync(); }

   private:
    StrictEnv* env_;
    const std::string name_;
    std::unique_ptr<WritableFile> file_;
  };

  Status Opened(const std::string& name, const Status& s, WritableFile** file) {
    if (!s.ok()) return s;
    std::lock_guard<std::mutex> hold(mutex_);
    written_.insert(name);
    *file = new File(this, name, *file);
    return s;
  }

  std::mutex mutex_;
  std::set<std::string> written_;
  int absent_ = 0, open_ = 0;
};

static void Removals() {
  printf("-- removals\n");
  StrictEnv env(Env::Default());
  Options options;
  options.create_if_missing = true;
  options.env = &env;
  options.write_buffer_size = 64 << 10;
  const std::string name = root + "/removals";
  DB* db = nullptr;
  SHOW(DB::Open(options, name, &db));
  env.Show();
  for (int round = 0; round < 40; round++) {
    for (int i = 0; i < 1000; i++)
      db->Put(WriteOptions(), std::to_string(i), std::string(100, 'a' + round % 20));
    if (round % 8 == 0) db->CompactRange(nullptr, nullptr);
    // A memtable may be on its way to a table, or not.
    for (int i = 0; i < 37 * round; i++) db->Put(WriteOptions(), "more", std::string(100, 'a'));
    delete db;
    options.reuse_logs = round % 4 == 1;
    const Status s = DB::Open(options, name, &db);
    if (!s.ok()) printf("%s\n", s.ToString().c_str());
    if (!s.ok()) return;
  }
  delete db;
  env.Show();
}

// Leaves out what LevelDB's own leaves in.
class PlainEnv : public EnvWrapper {
 public:
  explicit PlainEnv(Env* base) : EnvWrapper(base) {}
  Status GetChildren(const std::string& d, std::vector<std::string>* r) override {
    const Status s = target()->GetChildren(d, r);
    for (auto it = r->begin(); it != r->end();)
      it = *it == "." || *it == ".." ? r->erase(it) : it + 1;
    return s;
  }
};

static void Directories() {
  printf("-- directories without a database\n");
  Env* const system = Env::Default();
  EnvWrapper dotted(system);
  PlainEnv plain(system);
  const std::string name = root + "/empty", stranger = name + "/stranger";
  for (Env* env : {system, static_cast<Env*>(&dotted), static_cast<Env*>(&plain)}) {
    Options options;
    options.env = env;
    SHOW(DestroyDB(name, options));
    SHOW(system->CreateDir(name));
    SHOW(DestroyDB(name, options));
    printf("there %d\n", system->FileExists(name));
    SHOW(system->CreateDir(name));
    WritableFile* file = nullptr;
    SHOW(system->NewWritableFile(stranger, &file));
    delete file;
    SHOW(DestroyDB(name, options));
    printf("there %d, with a lock %d\n", system->FileExists(stranger),
           system->FileExists(name + "/LOCK"));
    SHOW(system->RemoveFile(stranger));
    SHOW(system->RemoveDir(name));
  }
  // A link to an empty directory is not followed where it would lead to its end.
  SHOW(system->CreateDir(name));
  const std::string link = root + "/empty-link";
  printf("linked %d\n", symlink(name.c_str(), link.c_str()));
  SHOW(DestroyDB(link, Options()));
  printf("there %d\n", system->FileExists(name));
}

static std::string TableOf(const std::string& name) {
  std::vector<std::string> children;
  Env::Default()->GetChildren(name, &children);
  std::set<std::string> tables;
  for (const std::string& child : children) {
    if (child.size() > 4 && child.compare(child.size() - 4, 4, ".ldb") == 0)
      tables.insert(name + "/" + child);
  }
  return tables.empty() ? "" : *tables.rbegin();
}

static void Damage() {
  printf("-- damage that a compaction meets\n");
  const std::string name = root + "/damage";
  Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  DB* db = nullptr;
  for (int round = 0; round < 2; round++) {
    SHOW(DB::Open(options, name, &db));
    for (int i = 0; i < 10; i++)
      db->Put(WriteOptions(), std::to_string(i), std::string(1000, 'a' + round));
    // A null batch flushes the memtable; the second call waits for it.
    SHOW(db->Write(WriteOptions(), nullptr));
    SHOW(db->Write(WriteOptions(), nullptr));
    delete db;
    FILE* file = fopen(TableOf(name).c_str(), "r+");
    if (file == nullptr) return;
    fseek(file, 100, SEEK_SET);
    fputc('#', file);
    fclose(file);
  }
  SHOW(DB::Open(options, name, &db));
  SHOW(db->Put(WriteOptions(), "before", "compaction"));
  db->CompactRange(nullptr, nullptr);
  SHOW(db->Put(WriteOptions(), "after", "compaction"));
  WriteOptions sync;
  sync.sync = true;
  SHOW(db->Delete(sync, "before"));
  std::string value;
  SHOW(db->Get(ReadOptions(), "before", &value));
  delete db;
  SHOW(DB::Open(options, name, &db));
  SHOW(db->Get(ReadOptions(), "before", &value));
  SHOW(db->Get(ReadOptions(), "after", &value));
  SHOW(db->Put(WriteOptions(), "reopened", "yes"));
  delete db;
}

// Keeps files under numbers, by the very text of their names, as environments in memory and in
// object stores do. It has no directories and no locks. `flat` lists all files, whatever the
// directory.
class NamesEnv : public EnvWrapper {
 public:
  NamesEnv(Env* base, bool flat) : EnvWrapper(base), flat_(flat) {}

  Status NewSequentialFile(const std::string& f, SequentialFile** r) override {
    return target()->NewSequentialFile(Of(f), r);
  }
  Status NewRandomAccessFile(const std::string& f, RandomAccessFile** r) override {
    return target()->NewRandomAccessFile(Of(f), r);
  }
  Status NewWritableFile(const std::string& f, WritableFile** r) override {
    return target()->NewWritableFile(Made(f), r);
  }
  Status NewAppendableFile(const std::string& f, WritableFile** r) override {
    return target()->NewAppendableFile(Made(f), r);
  }
  bool FileExists(const std::string& f) override { return !Number(f).empty(); }
  Status GetChildren(const std::string& d, std::vector<std::string>* r) override {
    std::lock_guard<std::mutex> hold(mutex_);
    r->clear();
    const std::string prefix = d + "/";
    for (const auto& file : files_) {
      const std::string& name = file.first;
      if (flat_) {
        r->push_back(name.substr(name.rfind('/') + 1));
      } else if (name.compare(0, prefix.size(), prefix) == 0) {
        r->push_back(name.substr(prefix.size()));
      }
    }
    return Status::OK();
  }
  Status RemoveFile(const std::string& f) override {
    const std::string number = Number(f);
    if (number.empty()) return Status::NotFound(f, "not there");
    std::lock_guard<std::mutex> hold(mutex_);
    files_.erase(f);
    return target()->RemoveFile(number);
  }
  Status CreateDir(const std::string&) override { return Status::OK(); }
  Status RemoveDir(const std::string&) override { return Status::OK(); }
  Status GetFileSize(const std::string& f, uint64_t* size) override {
    return target()->GetFileSize(Of(f), size);
  }
  Status RenameFile(const std::string& f, const std::string& t) override {
    const std::string number = Number(f);
    if (number.empty()) return Status::NotFound(f, "not there");
    std::lock_guard<std::mutex> hold(mutex_);
    files_.erase(f);
    files_[t] = number;
    return Status::OK();
  }
  Status NewLogger(const std::string& f, Logger**) override {
    return Status::NotSupported(f, "no loggers");
  }
  Status LockFile(const std::string&, FileLock** lock) override {
    *lock = nullptr;
    return Status::OK();
  }
  Status UnlockFile(FileLock*) override { return Status::OK(); }

  size_t files() const { return files_.size(); }

 private:
  std::string Number(const std::string& name) {
    std::lock_guard<std::mutex> hold(mutex_);
    const auto found = files_.find(name);
    return found == files_.end() ? "" : found->second;
  }
  std::string Of(const std::string& name) {
    const std::string number = Number(name);
    return number.empty() ? root + "/not-there" : number;
  }
  std::string Made(const std::string& name) {
    std::lock_guard<std::mutex> hold(mutex_);
    std::string& number = files_[name];
    if (number.empty()) number = root + "/file-" + std::to_string(made_++);
    return number;
  }

  const bool flat_;
  std::mutex mutex_;
  std::map<std::string, std::string> files_;
  static int made_;
};

int NamesEnv::made_ = 0;

static void Names() {
  printf("-- environments that know names alone\n");
  for (const char* name : {"/db", "/db/", "", "db", "db/"}) {
    for (const bool flat : {false, true}) {
      printf("'%s', %s\n", name, flat ? "flat" : "by prefix");
      NamesEnv env(Env::Default(), flat);
      Options options;
      options.create_if_missing = true;
      options.env = &env;
      for (int round = 0; round < 3; round++) {
        DB* db = nullptr;
        const Status s = DB::Open(options, name, &db);
        printf("open: %s\n", Kind(s).c_str());
        if (!s.ok()) break;
        std::string value;
        SHOW(db->Get(ReadOptions(), "key", &value));
        SHOW(db->Put(WriteOptions(), "key", "value"));
        if (round == 1) db->CompactRange(nullptr, nullptr);
        delete db;
      }
      // What it puts aside is listed as well where directories do not count.
      if (!flat) SHOW(RepairDB(name, options));
      SHOW(DestroyDB(name, options));
    }
  }
}

// A database's table, as a program reads it that knows nothing of the order of its keys.
static void Tables() {
  printf("-- tables as LevelDB's own tool reads them\n");
  const std::string name = root + "/tables";
  Options options;
  options.create_if_missing = true;
  options.compression = kNoCompression;
  options.write_buffer_size = 1 << 20;
  DB* db = nullptr;
  SHOW(DB::Open(options, name, &db));
  // Many versions of one key, and keys that begin others.
  const Snapshot* snapshots[300];
  for (int i = 0; i < 300; i++) {
    db->Put(WriteOptions(), "hot", std::string(1000, 'v'));
    snapshots[i] = db->GetSnapshot();
    db->Put(WriteOptions(), "k" + std::string(i % 7, '\0'), std::string(1000, 'v'));
  }
  db->CompactRange(nullptr, nullptr);
  for (const Snapshot* snapshot : snapshots) db->ReleaseSnapshot(snapshot);
  delete db;
  const std::string path = TableOf(name);
  uint64_t size = 0;
  SHOW(Env::Default()->GetFileSize(path, &size));
  RandomAccessFile* file = nullptr;
  SHOW(Env::Default()->NewRandomAccessFile(path, &file));
  leveldb::Table* table = nullptr;
  SHOW(leveldb::Table::Open(Options(), file, size, &table));
  if (table == nullptr) return;
  int entries = 0;
  Iterator* it = table->NewIterator(ReadOptions());
  for (it->SeekToFirst(); it->Valid(); it->Next()) entries++;
  printf("hundreds of entries %d\n", entries >= 300);
  SHOW(it->status());
  delete it;
  delete table;
  delete file;
  // What is no directory has no database.
  SHOW(DestroyDB(path, Options()));
  SHOW(DB::Open(options, path + "/db", &db));
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  root = argv[1];
  Removals();
  Directories();
  Damage();
  Names();
  Tables();
}
