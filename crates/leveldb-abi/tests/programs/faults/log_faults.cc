// Faults of logs and the batches in them.
#include <leveldb/iterator.h>
#include <leveldb/write_batch.h>
#include <sys/mman.h>

#include "faults.h"
#include "watched_env.h"

using namespace leveldb;

static bool IsLog(const std::string& name) {
  return name.size() > 4 && name.compare(name.size() - 4, 4, ".log") == 0;
}

// One write to the log fails half way, as on a disk that is full for a moment. What is acknowledged
// later must be there later.
Verdict FailedAppend(const std::string& dir) {
  WatchedEnv env;
  bool armed = false;
  env.before = [&](WatchedEnv::Operation operation, const std::string& name, size_t size) {
    if (!armed || operation != WatchedEnv::kAppend || !IsLog(name) || size < 50)
      return Status::OK();
    armed = false;
    return Status::IOError(name, "No space left on device");
  };
  Options options;
  options.env = &env;
  auto db = Open(dir + "/db", options);
  Must(db->Put(Synced(), "before", Noise(0, 100)));
  armed = true;
  Must(!db->Put(Synced(), "failing", Noise(1, 100)).ok(), "the append did not fail");
  std::vector<std::string> acknowledged;
  for (int i = 0; i < 60; i++) {
    if (db->Put(Synced(), Key(i), Noise(i, 100)).ok()) acknowledged.push_back(Key(i));
  }
  db.reset();
  db = Open(dir + "/db");
  size_t present = 0;
  std::string value;
  for (const std::string& key : acknowledged) present += db->Get(ReadOptions(), key, &value).ok();
  Must(db->Get(ReadOptions(), "before", &value));
  return Judge(present == acknowledged.size(),
               std::to_string(acknowledged.size()) +
                   " synced puts acknowledged after a failed append, " + std::to_string(present) +
                   " of them present after reopening");
}

// A log is left behind for a new one; a synced write goes to the new one; the power fails. The old
// log's unsynced writes came before that synced one.
Verdict PrefixAcrossLogs(const std::string& dir) {
  WatchedEnv env;
  int logs = 0;
  env.before = [&](WatchedEnv::Operation operation, const std::string& name, size_t) {
    logs += operation == WatchedEnv::kCreate && IsLog(name);
    return Status::OK();
  };
  Options options;
  options.env = &env;
  options.write_buffer_size = 64 << 10;
  auto db = Open(dir + "/db", options);
  env.holding = true;
  const int first = logs;
  int written = 0;
  for (; logs == first; written++)
    Must(db->Put(WriteOptions(), Key(written), Noise(written, 1000)));
  Must(db->Put(Synced(), "synced", "last of all"));
  env.CopyWhatIsDurable(dir + "/db", dir + "/cut");
  env.Release();
  db.reset();
  DB* opened = nullptr;
  const Status status = DB::Open(Options(), dir + "/cut", &opened);
  db.reset(opened);
  if (!status.ok())
    return Judge(false, "cannot be opened after the power cut: " + status.ToString());
  std::string value;
  const bool last = db->Get(ReadOptions(), "synced", &value).ok();
  int present = 0;
  for (int i = 0; i < written; i++) present += db->Get(ReadOptions(), Key(i), &value).ok();
  return Judge(last && present == written, "after a power cut the synced put is " +
                                               std::string(last ? "there" : "lost") + ", and " +
                                               std::to_string(present) + " of the " +
                                               std::to_string(written) + " puts before it");
}

// One bit in the middle of the log flips. Every hundredth put was synced, and it and all before it
// acknowledged.
Verdict FlippedBitInLog(const std::string& dir) {
  const int kPuts = 5000;
  auto db = Open(dir + "/db");
  for (int i = 0; i < kPuts; i++)
    Must(db->Put(i % 100 == 99 ? Synced() : WriteOptions(), Key(i), Noise(i, 50)));
  db.reset();
  const std::string log = Files(dir + "/db", ".log").back();
  std::string bytes = Contents(log);
  bytes[bytes.size() / 2] ^= 1;
  Replace(log, bytes);
  DB* opened = nullptr;
  const Status status = DB::Open(Options(), dir + "/db", &opened);
  if (status.IsCorruption()) return Judge(true, "the open fails with Corruption");
  Must(status);
  db.reset(opened);
  int missing = 0;
  std::string value;
  for (int i = 0; i < kPuts; i++) missing += !db->Get(ReadOptions(), Key(i), &value).ok();
  return Judge(missing == 0, "opens without an error, " + std::to_string(missing) + " of " +
                                 std::to_string(kPuts) + " keys gone, synced ones among them");
}

// A batch whose second record is not one. A batch is applied whole or not at all.
Verdict MalformedBatch(const std::string& dir) {
  auto db = Open(dir + "/db");
  WriteBatch batch;
  batch.Put("first", "applied?");
  batch.Put("second", "x");
  static_assert(sizeof(WriteBatch) == sizeof(std::string), "a batch is its bytes");
  std::string* bytes = reinterpret_cast<std::string*>(&batch);
  (*bytes)[bytes->size() - 10] = 9;
  const Status status = db->Write(WriteOptions(), &batch);
  std::string value;
  bool half = db->Get(ReadOptions(), "first", &value).ok();
  db.reset();
  db = Open(dir + "/db");
  half = half || db->Get(ReadOptions(), "first", &value).ok();
  return Judge(!status.ok() && !half,
               std::string(status.ok() ? "accepted" : "refused") +
                   (half ? ", and half applied" : ", and nothing of it applied"));
}

namespace {

struct Lengths : public WriteBatch::Handler {
  void Put(const Slice&, const Slice& value) override { last = value.size(); }
  void Delete(const Slice&) override {}
  size_t last = 0;
};

}  // namespace

// A value of 4 GiB and a little: its length does not fit in a batch's 32 bits.
Verdict HugeValue(const std::string& dir) {
  unsigned long available = 0;
  const std::string memory = Contents("/proc/meminfo");
  sscanf(memory.c_str() + memory.find("MemAvailable:"), "MemAvailable: %lu", &available);
  if (available < (6ul << 20)) return {Verdict::kSkipped, "needs 6 GiB of memory"};
  const size_t size = (size_t{4} << 30) + 5;
  void* zeros = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  Must(zeros != MAP_FAILED, "no address space");
  const Slice huge(static_cast<char*>(zeros), size);
  {
    WriteBatch batch;
    Lengths lengths;
    batch.Put("huge", huge);
    const Status status = batch.Iterate(&lengths);
    // Such a batch has the bytes of the log.
    if (lengths.last != 0 && lengths.last != size) {
      return Judge(false, "the batch holds a value of " + std::to_string(lengths.last) +
                              " bytes; reading it gives " + status.ToString());
    }
  }
  auto db = Open(dir + "/db");
  Must(db->Put(Synced(), "before", "x"));
  const Status status = db->Put(WriteOptions(), "huge", huge);
  const uint64_t bytes = BytesOnDisk(dir + "/db");
  std::string value;
  Must(db->Put(Synced(), "after", "x"));
  db = nullptr;
  db = Open(dir + "/db");
  Must(db->Get(ReadOptions(), "before", &value));
  Must(db->Get(ReadOptions(), "after", &value));
  const bool absent = db->Get(ReadOptions(), "huge", &value).IsNotFound();
  return Judge(status.IsInvalidArgument() && bytes < (64 << 20) && absent,
               "refused with " + status.ToString().substr(0, 16) + " after writing " +
                   std::to_string(bytes >> 20) + " MiB");
}

// A bit flips in each of several records; then the database is repaired. What comes out must have
// been put in.
Verdict RepairOfDamagedLog(const std::string& dir) {
  const int kPuts = 2000;
  auto db = Open(dir + "/db");
  for (int i = 0; i < kPuts; i++) Must(db->Put(WriteOptions(), Key(i), Noise(i, 100)));
  db.reset();
  const std::string log = Files(dir + "/db", ".log").back();
  std::string bytes = Contents(log);
  for (size_t at = bytes.size() / 20; at < bytes.size(); at += bytes.size() / 10) bytes[at] ^= 4;
  Replace(log, bytes);
  Must(RepairDB(dir + "/db", Options()));
  db = Open(dir + "/db");
  int wrong = 0, right = 0;
  std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    int i = -1;
    sscanf(it->key().ToString().c_str(), "key%d", &i);
    const bool put = i >= 0 && it->key() == Key(i) && it->value() == Noise(i, 100);
    (put ? right : wrong)++;
  }
  Must(it->status());
  it.reset();
  return Judge(wrong == 0, std::to_string(right) + " of " + std::to_string(kPuts) +
                               " entries came out, and " + std::to_string(wrong) +
                               " that were never put in");
}
