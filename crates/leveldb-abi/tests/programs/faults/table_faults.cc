// Faults of tables, the MANIFEST and compaction.
#include <leveldb/comparator.h>
#include <leveldb/iterator.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <sstream>

#include "faults.h"
#include "watched_env.h"

using namespace leveldb;

static Options SmallBuffer() {
  Options options;
  options.write_buffer_size = 64 << 10;
  options.max_file_size = 1 << 20;
  return options;
}

// Old data is compacted after new data was written, as happens all the time; the database is closed
// and repaired, for which there is no need.
Verdict RepairOfHealthy(const std::string& dir) {
  const int kKeys = 2000;
  std::map<std::string, std::string> expected;
  auto db = Open(dir + "/db");
  const auto put = [&](int from, int to, int step, int seed) {
    for (int i = from; i < to; i += step) {
      expected[Key(i)] = Noise(i + seed, 100);
      Must(db->Put(WriteOptions(), Key(i), expected[Key(i)]));
    }
    // Flushes the memtable and compacts nothing: there are no such keys.
    const Slice begin("a"), end("b");
    db->CompactRange(&begin, &end);
  };
  put(0, kKeys, 1, 0);
  db->CompactRange(nullptr, nullptr);
  // A table over that one, and a newer one over a part of both.
  put(0, kKeys, 100, 10000);
  put(10, 30, 1, 20000);
  // The first two are compacted, into a table with a higher number than the newest has.
  const std::string from = Key(1000), to = Key(1020);
  const Slice begin(from), end(to);
  db->CompactRange(&begin, &end);
  db.reset();
  Must(RepairDB(dir + "/db", Options()));
  db = Open(dir + "/db");
  int wrong = 0;
  for (const auto& entry : expected) {
    std::string value;
    wrong += !db->Get(ReadOptions(), entry.first, &value).ok() || value != entry.second;
  }
  return Judge(wrong == 0, std::to_string(wrong) + " of " + std::to_string(expected.size()) +
                               " keys have an old value or none after the repair");
}

// Bits of tables flip, one at a time. Reads with default options return the right value, or an
// error.
Verdict FlippedBitInTable(const std::string& dir) {
  const int kPuts = 5000, kFlips = 100;
  auto db = Open(dir + "/db", SmallBuffer());
  for (int i = 0; i < kPuts; i++) Must(db->Put(WriteOptions(), Key(i), Noise(i, 50)));
  db->CompactRange(nullptr, nullptr);
  db.reset();
  int wrong = 0, refused = 0;
  for (int flip = 0; flip < kFlips; flip++) {
    const std::string copy = dir + "/copy" + std::to_string(flip);
    CopyAll(dir + "/db", copy);
    const std::vector<std::string> tables = Files(copy, ".ldb");
    Must(!tables.empty(), "there are no tables");
    const std::string table = tables[flip % tables.size()];
    std::string bytes = Contents(table);
    bytes[(uint64_t(flip) * flip * 2654435761 + 12345) % bytes.size()] ^= 1 << flip % 8;
    Replace(table, bytes);
    DB* opened = nullptr;
    Status status = DB::Open(SmallBuffer(), copy, &opened);
    int right = 0, other = 0;
    if (status.ok()) {
      std::unique_ptr<Iterator> it(opened->NewIterator(ReadOptions()));
      for (it->SeekToFirst(); it->Valid(); it->Next()) {
        (right < kPuts && it->key() == Key(right) && it->value() == Noise(right, 50) ? right
                                                                                     : other)++;
      }
      status = it->status();
    }
    delete opened;
    if (!status.ok()) {
      refused++;
    } else if (right != kPuts || other != 0) {
      wrong++;
    }
    for (const std::string& file : Files(copy, "")) Env::Default()->RemoveFile(file);
    Env::Default()->RemoveDir(copy);
  }
  return Judge(wrong == 0, "of " + std::to_string(kFlips) + " flipped bits " +
                               std::to_string(refused) + " gave an error and " +
                               std::to_string(wrong) + " a wrong scan with status OK");
}

// Snapshots keep many versions of a few keys. The versions of one key must not be in two files of
// one level.
Verdict KeySplitAcrossFiles(const std::string& dir) {
  auto db = Open(dir + "/db", SmallBuffer());
  std::vector<const Snapshot*> snapshots;
  for (int version = 0; version < 300; version++) {
    for (int key = 0; key < 3; key++)
      Must(db->Put(WriteOptions(), Key(key), Noise(version * 3 + key, 10000)));
    snapshots.push_back(db->GetSnapshot());
  }
  db->CompactRange(nullptr, nullptr);
  std::string text;
  Must(db->GetProperty("leveldb.sstables", &text), "there is no such property");
  int level = -1, tables = 0, split = 0;
  std::map<std::string, int> ends;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (sscanf(line.c_str(), "--- level %d", &level) == 1) {
      ends.clear();
      continue;
    }
    char smallest[64], largest[64];
    if (level < 1 ||
        sscanf(line.c_str(), " %*[^'[]['%63[^']' @ %*[^'.].. '%63[^']'", smallest, largest) != 2)
      continue;
    tables++;
    split += ends[smallest]++ > 0;
    if (std::string(smallest) != largest) split += ends[largest]++ > 0;
  }
  Must(tables > 1 || text.find("level 1") != std::string::npos,
       "there are no tables in deeper levels");
  for (const Snapshot* snapshot : snapshots) db->ReleaseSnapshot(snapshot);
  return Judge(split == 0, std::to_string(split) + " of " + std::to_string(tables) +
                               " tables share a key with another of their level");
}

// Long keys make long records in the MANIFEST.
Verdict ManifestGrowth(const std::string& dir) {
  auto db = Open(dir + "/db", SmallBuffer());
  const std::string key = Noise(1, 1 << 20);
  uint64_t largest = 0;
  for (int i = 0; i < 150; i++) {
    Must(db->Put(WriteOptions(), key, std::to_string(i)));
    for (const std::string& manifest : Files(dir + "/db", "", "MANIFEST-")) {
      struct stat data;
      if (stat(manifest.c_str(), &data) == 0) largest = std::max<uint64_t>(largest, data.st_size);
    }
  }
  return Judge(largest < (100 << 20), "the MANIFEST of a database with one entry reached " +
                                          std::to_string(largest >> 20) + " MiB");
}

static const int kDeleted = 20000;

// A database from which everything but its last entry has been deleted.
static std::unique_ptr<DB> Deleted(const std::string& path, const Options& options,
                                   uint64_t* full) {
  auto db = Open(path, options);
  for (int i = 0; i < kDeleted; i++) Must(db->Put(WriteOptions(), Key(i), Noise(i, 1000)));
  *full = BytesOnDisk(path);
  for (int i = 0; i < kDeleted; i++) Must(db->Delete(WriteOptions(), Key(i)));
  Must(db->Put(WriteOptions(), "last", "one"));
  return db;
}

Verdict SpaceOfDeleted(const std::string& dir) {
  uint64_t full = 0, now = 0;
  auto db = Deleted(dir + "/db", SmallBuffer(), &full);
  const bool given_back = Eventually([&] { return (now = BytesOnDisk(dir + "/db")) < full / 3; });
  return Judge(given_back, std::to_string(full >> 10) + " KiB, and " + std::to_string(now >> 10) +
                               " KiB some seconds after everything was deleted");
}

namespace {

// Counts what the calling thread compares.
class CountingComparator : public Comparator {
 public:
  static thread_local uint64_t count;
  const char* Name() const override { return "counting"; }
  int Compare(const Slice& a, const Slice& b) const override {
    count++;
    return a.compare(b);
  }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

thread_local uint64_t CountingComparator::count = 0;

}  // namespace

Verdict CrawlOverDeleted(const std::string& dir) {
  CountingComparator comparator;
  Options options = SmallBuffer();
  options.comparator = &comparator;
  uint64_t full = 0, steps = 0;
  auto db = Deleted(dir + "/db", options, &full);
  const bool quick = Eventually([&] {
    CountingComparator::count = 0;
    std::unique_ptr<Iterator> it(db->NewIterator(ReadOptions()));
    it->SeekToFirst();
    Must(it->Valid() && it->key() == "last", "the last entry is not there");
    steps = CountingComparator::count;
    return steps < kDeleted / 10;
  });
  db.reset();
  return Judge(quick, "finding the first entry behind " + std::to_string(kDeleted) +
                          " deleted ones takes " + std::to_string(steps) +
                          " comparisons, some seconds later");
}

// The bytes that a load has written, with twenty reads after each put: of the same database, or of
// another. Background work is waited for at each step, so that only the calls decide how much of it
// there is.
static uint64_t BytesWritten(const std::string& dir, bool of_the_same) {
  const int kKeys = 20000, kPuts = 40000;
  auto another = Open(dir + "/another", SmallBuffer());
  for (int i = 0; i < kKeys; i++) Must(another->Put(WriteOptions(), Key(i), Noise(i, 100)));
  WatchedEnv env;
  std::atomic<uint64_t> written{0};
  env.before = [&](WatchedEnv::Operation operation, const std::string&, size_t size) {
    if (operation == WatchedEnv::kAppend) written += size;
    return Status::OK();
  };
  Options options = SmallBuffer();
  options.env = &env;
  auto db = Open(dir + "/db" + (of_the_same ? "1" : "2"), options);
  DB* const read = of_the_same ? db.get() : another.get();
  std::string value;
  for (int i = 0; i < kPuts; i++) {
    Must(db->Put(WriteOptions(), Key(int(uint64_t(i) * 7919 % kKeys)), Noise(i, 100)));
    env.WaitForBackground();
    for (int k = 0; k < 20 && i > kKeys; k++) {
      Must(read->Get(ReadOptions(), Key(int((uint64_t(i) * 31 + k) * 104729 % kKeys)), &value));
      env.WaitForBackground();
    }
  }
  return written;
}

// Reads between writes trigger compactions of files that they searched without a hit, though these
// would soon be compacted anyway.
Verdict ReadsThatWrite(const std::string& dir) {
  const uint64_t without = BytesWritten(dir, false), with = BytesWritten(dir, true);
  return Judge(with < without + without / 2,
               "a load with reads of another database between its puts writes " +
                   std::to_string(without >> 10) + " KiB, with reads of its own " +
                   std::to_string(with >> 10) + " KiB");
}
