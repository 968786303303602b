// Faults of processes, the disk and threads.
#include <fcntl.h>
#include <leveldb/comparator.h>
#include <leveldb/iterator.h>
#include <spawn.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "faults.h"
#include "watched_env.h"

using namespace leveldb;

// Whether another process can open a database.
static bool AnotherProcessOpens(const std::string& path) {
  char self[] = "/proc/self/exe", open[] = "--open";
  std::string copy = path;
  char* const arguments[] = {self, open, &copy[0], nullptr};
  pid_t child = 0;
  Must(posix_spawn(&child, self, nullptr, nullptr, arguments, environ) == 0,
       "no process can be started");
  int status = 0;
  Must(waitpid(child, &status, 0) == child, "the process cannot be waited for");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The lock must hold after another open in this process was refused.
Verdict SecondOpen(const std::string& dir) {
  auto db = Open(dir + "/db");
  Must(!AnotherProcessOpens(dir + "/db"), "the lock does not hold at all");
  DB* second = nullptr;
  Must(!DB::Open(Options(), dir + "/db", &second).ok(), "the second open is not refused");
  const bool taken = AnotherProcessOpens(dir + "/db");
  return Judge(!taken, taken ? "after a refused second open another process opens the live database"
                             : "another process is kept out");
}

// A child goes on with the database that its parent has open.
Verdict ForkedChild(const std::string& dir) {
  auto db = Open(dir + "/db");
  Must(db->Put(Synced(), "before", "x"));
  const pid_t child = fork();
  if (child == 0) {
    int acknowledged = 0;
    for (int i = 0; i < 100; i++)
      acknowledged += db->Put(WriteOptions(), "child" + Key(i), Noise(i, 1000)).ok();
    _exit(acknowledged);
  }
  int status = 0;
  Must(waitpid(child, &status, 0) == child && WIFEXITED(status), "the child died");
  const int by_child = WEXITSTATUS(status);
  int by_parent = 0, present = 0;
  for (int i = 0; i < 100; i++)
    by_parent += db->Put(Synced(), "parent" + Key(i), Noise(i, 1000)).ok();
  db.reset();
  db = Open(dir + "/db");
  std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) present++;
  it.reset();
  return Judge(present == 1 + by_child + by_parent,
               std::to_string(by_child) + " puts acknowledged to the child and " +
                   std::to_string(by_parent) + " to the parent, " + std::to_string(present - 1) +
                   " of them there afterwards");
}

// CURRENT names a file outside the directory.
Verdict HostileCurrent(const std::string& dir) {
  for (const char* name : {"/evil", "/db"}) Must(Open(dir + name)->Put(Synced(), "owner", name));
  const std::string manifest = Files(dir + "/evil", "", "MANIFEST-").back();
  Replace(dir + "/db/CURRENT", "../evil" + manifest.substr(manifest.rfind('/')) + "\n");
  DB* db = nullptr;
  const Status status = DB::Open(Options(), dir + "/db", &db);
  delete db;
  return Judge(!status.ok(), status.ok() ? "followed out of the directory" : "refused");
}

// Writes zeros to a file until there is no space left, or so many.
static void FillDisk(const std::string& path, size_t limit) {
  const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0666);
  const std::string zeros(4096, '\0');
  for (size_t size = 0; size < limit; size += zeros.size()) {
    if (write(file, zeros.data(), zeros.size()) <= 0) break;
  }
  close(file);
}

static bool IsSmallDisk(const std::string& dir) {
  struct statvfs data;
  return statvfs(dir.c_str(), &data) == 0 && uint64_t(data.f_blocks) * data.f_frsize <= (64 << 20);
}

static const Verdict kNeedsSmallDisk = {Verdict::kSkipped,
                                        "needs a file system of at most 64 MiB to itself"};

Verdict FullDisk(const std::string& dir) {
  if (!IsSmallDisk(dir)) return kNeedsSmallDisk;
  Options options;
  options.write_buffer_size = 64 << 10;
  auto db = Open(dir + "/db", options);
  for (int i = 0; i < 1000; i++) Must(db->Put(WriteOptions(), Key(i), Noise(i, 1000)));
  db.reset();
  FillDisk(dir + "/ballast", SIZE_MAX);
  DB* opened = nullptr;
  const Status status = DB::Open(options, dir + "/db", &opened);
  db.reset(opened);
  if (!status.ok()) return Judge(false, "cannot be opened: " + status.ToString().substr(0, 8));
  int present = 0;
  for (int i = 0; i < 1000; i++) {
    std::string value;
    present += db->Get(ReadOptions(), Key(i), &value).ok() && value == Noise(i, 1000);
  }
  return Judge(present == 1000,
               "opened on the full disk, " + std::to_string(present) + " of 1000 entries read");
}

// The disk is full for a while, so that a flush fails and with it the puts after it; then there is
// space again.
Verdict BackgroundError(const std::string& dir) {
  WatchedEnv env;
  std::atomic<bool> full{false};
  env.before = [&](WatchedEnv::Operation operation, const std::string& name, size_t) {
    return full && operation == WatchedEnv::kAppend
               ? Status::IOError(name, "No space left on device")
               : Status::OK();
  };
  Options options;
  options.env = &env;
  options.write_buffer_size = 64 << 10;
  auto db = Open(dir + "/db", options);
  const int kPuts = 100;
  for (int i = 0; i < kPuts; i++) Must(db->Put(WriteOptions(), Key(i), Noise(i, 1000)));
  env.WaitForBackground();
  full = true;
  db->CompactRange(nullptr, nullptr);
  Must(!db->Put(WriteOptions(), "during", "x").ok(), "a put on a full disk does not fail");
  full = false;
  const bool heals = Eventually([&] { return db->Put(Synced(), "after", "x").ok(); });
  db.reset();
  db = Open(dir + "/db", options);
  int present = 0;
  for (int i = 0; i < kPuts; i++) {
    std::string value;
    present += db->Get(ReadOptions(), Key(i), &value).ok() && value == Noise(i, 1000);
  }
  return Judge(heals && present == kPuts,
               std::string(heals ? "writes go on" : "writes keep failing") +
                   " when there is space again; " + std::to_string(present) + " of " +
                   std::to_string(kPuts) + " acknowledged puts there after reopening");
}

namespace {

thread_local bool of_the_program = false;

// Holds background threads back in a comparison until it is told otherwise.
class SlowComparator : public Comparator {
 public:
  const char* Name() const override { return "slow"; }
  int Compare(const Slice& a, const Slice& b) const override {
    if (!of_the_program) {
      std::unique_lock<std::mutex> lock(mutex_);
      waiting_++;
      wake_.wait(lock, [this] { return open_; });
    }
    return a.compare(b);
  }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
  void Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    wake_.notify_all();
  }
  bool Holds() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return waiting_ > 0;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable wake_;
  mutable int waiting_ = 0;
  bool open_ = false;
};

}  // namespace

// A compaction of one database takes very long. Another database in the process has little to do.
Verdict StallOfAnother(const std::string& dir) {
  of_the_program = true;
  SlowComparator comparator;
  Options options;
  options.write_buffer_size = 64 << 10;
  Options slow_options = options;
  slow_options.comparator = &comparator;
  auto slow = Open(dir + "/slow", slow_options);
  auto other = Open(dir + "/other", options);
  std::thread slow_writer([&] {
    of_the_program = true;
    for (int i = 0; i < 2000; i++) slow->Put(WriteOptions(), Key(i * 7919 % 500), Noise(i, 1000));
  });
  // It must begin with either library, however slow the disk: the seconds are for what may not be.
  bool began = false;
  for (int i = 0; i < 24 && !began; i++) began = Eventually([&] { return comparator.Holds(); });
  Must(began, "no compaction of the slow database began");
  std::atomic<int> written{0};
  std::thread other_writer([&] {
    of_the_program = true;
    while (written < 1000 && other->Put(WriteOptions(), Key(written), Noise(written, 1000)).ok())
      written++;
  });
  const bool flows = Eventually([&] { return written == 1000; });
  const int until_then = written;
  comparator.Open();
  slow_writer.join();
  other_writer.join();
  slow.reset();
  other.reset();
  return Judge(flows, "while a compaction of another database lasts, " +
                          std::to_string(until_then) + " of 1000 puts of 1 KB complete");
}

Verdict OrderOfDurability(const std::string& dir) {
  const auto acknowledge = [] {
    Must(write(2, "acknowledged\n", 13) == 13, "standard error is closed");
  };
  Options options;
  options.write_buffer_size = 64 << 10;
  for (int opened = 0; opened < 2; opened++) {
    auto db = Open(dir + "/db", options);
    Must(db->Put(Synced(), "first", "x"));
    acknowledge();
    for (int i = 0; i < 100; i++) Must(db->Put(WriteOptions(), Key(i), Noise(i, 1000)));
    Must(db->Put(Synced(), "last", "x"));
    acknowledge();
  }
  return {Verdict::kSkipped, "judged by the trace of system calls"};
}
