// Goes on with a history of writes in a database whose previous process may have been killed.
//
//   handover DIRECTORY SEED OPENED
//
// Opens the database, checks that it holds exactly the first so many writes of the history, says
// how many with the line "found N", and then writes on until it is killed, with a line "N" for each
// write that was acknowledged. SEED decides the history, the bits of OPENED the options of this
// time.
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/iterator.h>
#include <leveldb/write_batch.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace leveldb;

static const int kKeys = 400;

static uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

struct Change {
  int key;
  // 0 for a deletion.
  size_t size;
};

// The changes of a write, besides the count of writes that each makes as well.
static std::vector<Change> Changes(uint64_t seed, uint64_t write) {
  uint64_t random = Mix(seed ^ Mix(write));
  std::vector<Change> changes(1 + random % 4);
  for (Change& change : changes) {
    random = Mix(random);
    change.key = static_cast<int>(random % kKeys);
    const uint64_t shape = random >> 32;
    change.size = shape % 5 == 0 ? 0 : shape % 97 == 1 ? 70000 : 1 + shape % 1000;
  }
  return changes;
}

static std::string Key(int key) {
  char text[16];
  snprintf(text, sizeof text, "key%06d", key);
  return text;
}

// Different for every write and key, and half compressible.
static std::string Value(uint64_t write, const Change& change) {
  std::string value(change.size, 'x');
  uint64_t random = write * kKeys + change.key;
  for (size_t i = 0; i < value.size(); i += 2) {
    if (i % 16 == 0) random = Mix(random);
    value[i] = static_cast<char>(random >> i % 16 * 4);
  }
  return value;
}

static void Must(bool condition, const std::string& what) {
  if (condition) return;
  fprintf(stderr, "%s\n", what.c_str());
  _exit(1);
}

// How many writes of the history the database holds. Anything but exactly those ends the program.
static uint64_t Check(DB* db, uint64_t seed) {
  std::string text;
  const Status status = db->Get(ReadOptions(), "writes", &text);
  Must(status.ok() || status.IsNotFound(), status.ToString());
  const uint64_t writes = status.ok() ? strtoull(text.c_str(), nullptr, 10) : 0;
  struct Last {
    uint64_t write;
    Change change;
  };
  std::vector<Last> model(kKeys, Last{0, {0, 0}});
  for (uint64_t write = 0; write < writes; write++) {
    for (const Change& change : Changes(seed, write)) model[change.key] = {write, change};
  }
  ReadOptions options;
  options.verify_checksums = true;
  std::unique_ptr<Iterator> it(db->NewIterator(options));
  it->SeekToFirst();
  for (int key = 0; key < kKeys; key++) {
    const Last& last = model[key];
    const bool expected = last.change.size != 0;
    const bool found = it->Valid() && it->key() == Key(key);
    Must(found == expected,
         Key(key) + (found ? " is back" : " is lost") + " after " + text + " writes");
    if (!found) continue;
    Must(it->value() == Value(last.write, last.change),
         Key(key) + " has another value after " + text + " writes");
    it->Next();
  }
  if (writes != 0) {
    Must(it->Valid() && it->key() == "writes", "an unknown key");
    it->Next();
  }
  Must(!it->Valid() && it->status().ok(), "more than there can be: " + it->status().ToString());
  return writes;
}

static void Say(const std::string& line) {
  Must(write(1, line.data(), line.size()) == static_cast<ssize_t>(line.size()),
       "the pipe is closed");
}

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const uint64_t seed = strtoull(arguments[2], nullptr, 10),
                 opened = strtoull(arguments[3], nullptr, 10);
  std::unique_ptr<const FilterPolicy> filter(NewBloomFilterPolicy(10));
  Options options;
  options.create_if_missing = true;
  options.write_buffer_size = opened & 1 ? 64 << 10 : 256 << 10;
  options.max_file_size = 1 << 20;
  options.block_size = opened & 2 ? 1 << 10 : 4 << 10;
  options.compression = opened & 4 ? kNoCompression : kSnappyCompression;
  options.filter_policy = opened & 8 ? filter.get() : nullptr;
  options.reuse_logs = opened & 16;
  options.paranoid_checks = opened & 32;
  DB* db = nullptr;
  const Status status = DB::Open(options, arguments[1], &db);
  Must(status.ok(), status.ToString());
  uint64_t done = Check(db, seed);
  Say("found " + std::to_string(done) + "\n");
  for (;; done++) {
    WriteBatch batch;
    for (const Change& change : Changes(seed, done)) {
      if (change.size == 0) {
        batch.Delete(Key(change.key));
      } else {
        batch.Put(Key(change.key), Value(done, change));
      }
    }
    batch.Put("writes", std::to_string(done + 1));
    WriteOptions write_options;
    write_options.sync = done % 16 == 0;
    const Status written = db->Write(write_options, &batch);
    Must(written.ok(), written.ToString());
    Say(std::to_string(done + 1) + "\n");
  }
}
