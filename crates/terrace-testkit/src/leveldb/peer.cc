// The real LevelDB behind a command line, for Terrace's tests.
//
//   peer COMMAND DB [--name=value ...]
//
// Every command opens DB with LevelDB, does one thing, prints one line and closes the database.
//
//   fill operations [--from, --to) of the workload --seed; --batch=N groups up to N of them in one
//   write,
//             --sync_every=N makes every Nth write synchronous, --kill=1 ends with SIGKILL instead
//             of a close
//             -> "filled FROM TO"
//   verify compares DB with the state after operations [0, --to) of the workload --seed: forwards,
//   backwards and
//             by Get                                                                          ->
//             "digest COUNT HASH"
//   digest reads every entry forwards and backwards -> "digest COUNT HASH" entries writes every
//   entry to standard output: u32 key length, u32 value length (little endian), key, value get
//   --key=HEX -> "value HEX", or "missing" put --key=HEX --value=HEX [--sync=1] -> "done" delete
//   --key=HEX [--sync=1] -> "done" compact the whole range -> "done" split puts --to=N versions of
//   the keys "a", "b" and "c", of 20,000 bytes each, and compacts while snapshots hold
//             all of them: the versions of a key end up in several tables of one level. Every tenth
//             version of "b" is deleted again -> "done"
//   property --property=NAME -> the property's text, or "missing" lock -> "locked"; holds the
//   database open until standard input ends open, repair, destroy -> "done"
//   die-compacting --key=HEX --value=HEX: a compaction of the whole range that does not come to its
//             edit; a synchronous put beside it is acknowledged, and the process ends with SIGKILL
//             -> "done"
//
// Settings: --create=0|1 --paranoid=0|1 --snappy=0|1 --bloom=BITS --block_size --restart_interval
// --write_buffer --max_file_size --max_open_files --cache --reuse_logs=0|1
// --comparator=bytewise|reverse.
//
// A failure prints "error TEXT" and ends with status 1; a command line that makes no sense ends
// with status 2.
//
// The workload is defined twice, here and in workload.rs, so that each side checks the other.

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <leveldb/cache.h>
#include <leveldb/comparator.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

namespace {

// ---- The workload
// -------------------------------------------------------------------------------------------------

uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// splitmix64.
class Random {
 public:
  Random(uint64_t seed, uint64_t purpose, uint64_t index)
      : state_(Mix(Mix(Mix(seed) + purpose) + index)) {}

  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    return Mix(state_);
  }

 private:
  uint64_t state_;
};

enum Purpose : uint64_t { kOperation = 1, kKey = 2, kValue = 3 };

void AppendBytes(Random* random, size_t length, int repeat, std::string* out) {
  const size_t end = out->size() + length;
  while (out->size() < end) {
    const uint64_t word = random->Next();
    char bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = static_cast<char>(word >> (8 * i));
    for (int i = 0; i < repeat && out->size() < end; i++) {
      out->append(bytes, std::min<size_t>(8, end - out->size()));
    }
  }
}

void AppendBigEndian(uint64_t number, std::string* out) {
  for (int shift = 56; shift >= 0; shift -= 8) out->push_back(static_cast<char>(number >> shift));
}

std::string Decimal(uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llu", static_cast<unsigned long long>(number));
  return text;
}

std::string KeyOf(uint64_t seed, uint64_t id) {
  Random random(seed, kKey, id);
  const uint64_t shape = random.Next() % 16;
  if (shape < 4) return Decimal(id);
  if (shape < 10) return Decimal(random.Next() % 10000000000000000u);
  std::string key;
  if (shape < 13) {
    const size_t length = random.Next() % 201;
    AppendBytes(&random, length, 1, &key);
  } else if (shape < 14) {
    const size_t length = random.Next() % 9;
    for (size_t i = 0; i < length; i++) key.push_back("\x00\x61\xfe\xff"[random.Next() & 3]);
  } else if (shape < 15) {
    key.assign(100, '\xff');
    AppendBigEndian(id, &key);
  } else {
    key = "prefix";
    key.append(40, '\0');
    AppendBigEndian(id, &key);
  }
  return key;
}

std::string ValueOf(uint64_t seed, uint64_t operation) {
  Random random(seed, kValue, operation);
  const uint64_t size_class = random.Next() % 10000;
  const uint64_t roll = random.Next();
  size_t length;
  if (size_class < 1) {
    length = roll % ((1u << 20) + 1);
  } else if (size_class < 11) {
    length = roll % ((1u << 16) + 1);
  } else if (size_class < 511) {
    length = 0;
  } else {
    length = 1 + roll % 200;
  }
  const int repeat = 1 + static_cast<int>(random.Next() % 4);
  std::string value;
  AppendBytes(&random, length, repeat, &value);
  return value;
}

struct Operation {
  bool put;
  uint64_t id;
};

Operation OperationAt(uint64_t seed, uint64_t index) {
  Random random(seed, kOperation, index);
  const uint64_t roll = random.Next() % 100;
  if (roll < 65) return {true, index};
  return {roll < 85, random.Next() % (index + 1)};
}

// ---- The digest of all entries in order
// ---------------------------------------------------------------------------

class Digest {
 public:
  void Add(const leveldb::Slice& key, const leveldb::Slice& value) {
    count_++;
    Absorb(key);
    Absorb(value);
  }

  uint64_t count() const { return count_; }

  void Print() const {
    std::printf("digest %llu %016llx\n", static_cast<unsigned long long>(count_),
                static_cast<unsigned long long>(Mix(hash_)));
  }

 private:
  void Absorb(const leveldb::Slice& bytes) {
    hash_ = Mix(hash_ ^ bytes.size());
    for (size_t at = 0; at < bytes.size(); at += 8) {
      uint64_t word = 0;
      const size_t length = std::min<size_t>(8, bytes.size() - at);
      for (size_t i = 0; i < length; i++) {
        word |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
      }
      hash_ ^= word;
      hash_ = ((hash_ << 29) | (hash_ >> 35)) * 0x9FB21C651E98DF25u;
    }
  }

  uint64_t count_ = 0;
  uint64_t hash_ = 0;
};

// ---- The command line
// ---------------------------------------------------------------------------------------------

[[noreturn]] void Usage(const std::string& problem) {
  std::fprintf(stderr, "peer: %s\n", problem.c_str());
  std::exit(2);
}

[[noreturn]] void Fail(const std::string& problem) {
  std::printf("error %s\n", problem.c_str());
  std::fflush(stdout);
  std::exit(1);
}

void Check(const leveldb::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

class Arguments {
 public:
  Arguments(int argc, char** argv) {
    if (argc < 3) Usage("usage: peer COMMAND DB [--name=value ...]");
    command = argv[1];
    path = argv[2];
    for (int i = 3; i < argc; i++) {
      const std::string argument = argv[i];
      const size_t equals = argument.find('=');
      if (argument.compare(0, 2, "--") != 0 || equals == std::string::npos)
        Usage("cannot read " + argument);
      values_[argument.substr(2, equals - 2)] = argument.substr(equals + 1);
    }
  }

  std::string Text(const std::string& name, const std::string& otherwise) {
    const auto found = values_.find(name);
    used_[name] = true;
    return found == values_.end() ? otherwise : found->second;
  }

  uint64_t Number(const std::string& name, uint64_t otherwise) {
    const std::string text = Text(name, "");
    if (text.empty()) return otherwise;
    char* end = nullptr;
    const uint64_t number = std::strtoull(text.c_str(), &end, 10);
    if (*end != '\0') Usage("--" + name + " wants a number");
    return number;
  }

  std::string Hex(const std::string& name) {
    const std::string text = Text(name, "");
    std::string bytes;
    for (size_t i = 0; i + 1 < text.size(); i += 2) {
      bytes.push_back(static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
    }
    return bytes;
  }

  void RefuseUnused() const {
    for (const auto& value : values_) {
      if (used_.find(value.first) == used_.end()) Usage("unknown option --" + value.first);
    }
  }

  std::string command;
  std::string path;

 private:
  std::map<std::string, std::string> values_;
  std::map<std::string, bool> used_;
};

class ReverseComparator : public leveldb::Comparator {
 public:
  int Compare(const leveldb::Slice& a, const leveldb::Slice& b) const override {
    return b.compare(a);
  }
  const char* Name() const override { return "terrace.test.ReverseBytewise"; }
  void FindShortestSeparator(std::string*, const leveldb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

// The options and the objects they point to.
struct Settings {
  explicit Settings(Arguments* arguments) {
    options.create_if_missing = arguments->Number("create", 0) != 0;
    options.paranoid_checks = arguments->Number("paranoid", 1) != 0;
    options.compression =
        arguments->Number("snappy", 1) != 0 ? leveldb::kSnappyCompression : leveldb::kNoCompression;
    options.block_size = arguments->Number("block_size", options.block_size);
    options.block_restart_interval =
        static_cast<int>(arguments->Number("restart_interval", options.block_restart_interval));
    options.write_buffer_size = arguments->Number("write_buffer", options.write_buffer_size);
    options.max_file_size = arguments->Number("max_file_size", options.max_file_size);
    options.max_open_files =
        static_cast<int>(arguments->Number("max_open_files", options.max_open_files));
    options.reuse_logs = arguments->Number("reuse_logs", 0) != 0;
    const uint64_t bloom = arguments->Number("bloom", 0);
    if (bloom != 0) filter.reset(leveldb::NewBloomFilterPolicy(static_cast<int>(bloom)));
    options.filter_policy = filter.get();
    cache.reset(leveldb::NewLRUCache(arguments->Number("cache", 8 << 20)));
    options.block_cache = cache.get();
    const std::string order = arguments->Text("comparator", "bytewise");
    if (order == "reverse") {
      options.comparator = &reverse;
    } else if (order != "bytewise") {
      Usage("unknown comparator " + order);
    }
  }

  ReverseComparator reverse;
  std::unique_ptr<const leveldb::FilterPolicy> filter;
  std::unique_ptr<leveldb::Cache> cache;
  leveldb::Options options;
};

std::unique_ptr<leveldb::DB> Open(const Arguments& arguments, const Settings& settings) {
  leveldb::DB* db = nullptr;
  Check(leveldb::DB::Open(settings.options, arguments.path, &db));
  return std::unique_ptr<leveldb::DB>(db);
}

leveldb::ReadOptions Careful() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  return options;
}

std::string Printable(const leveldb::Slice& bytes) {
  std::string text;
  char digits[3];
  for (size_t i = 0; i < bytes.size() && i < 64; i++) {
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(bytes[i]));
    text += digits;
  }
  return text + " (" + std::to_string(bytes.size()) + " bytes)";
}

// ---- The commands
// -------------------------------------------------------------------------------------------------

void Fill(Arguments* arguments, const Settings& settings) {
  const uint64_t seed = arguments->Number("seed", 0);
  const uint64_t from = arguments->Number("from", 0);
  const uint64_t to = arguments->Number("to", 0);
  const uint64_t largest_batch = arguments->Number("batch", 1);
  const uint64_t sync_every = arguments->Number("sync_every", 0);
  const bool kill = arguments->Number("kill", 0) != 0;
  arguments->RefuseUnused();
  auto db = Open(*arguments, settings);
  Random random(seed, from, to);
  uint64_t writes = 0;
  for (uint64_t i = from; i < to;) {
    leveldb::WriteBatch batch;
    const uint64_t length = largest_batch <= 1 ? 1 : 1 + random.Next() % largest_batch;
    for (uint64_t n = 0; n < length && i < to; n++, i++) {
      const Operation operation = OperationAt(seed, i);
      if (operation.put) {
        batch.Put(KeyOf(seed, operation.id), ValueOf(seed, i));
      } else {
        batch.Delete(KeyOf(seed, operation.id));
      }
    }
    leveldb::WriteOptions options;
    options.sync = sync_every != 0 && ++writes % sync_every == 0;
    Check(db->Write(options, &batch));
  }
  if (!kill) db.reset();
  std::printf("filled %llu %llu\n", static_cast<unsigned long long>(from),
              static_cast<unsigned long long>(to));
  std::fflush(stdout);
  if (kill) { raise(SIGKILL); }
}

Digest ReadAll(leveldb::DB* db) {
  std::unique_ptr<leveldb::Iterator> it(db->NewIterator(Careful()));
  Digest digest;
  for (it->SeekToFirst(); it->Valid(); it->Next()) digest.Add(it->key(), it->value());
  Check(it->status());
  uint64_t backwards = 0;
  for (it->SeekToLast(); it->Valid(); it->Prev()) backwards++;
  Check(it->status());
  if (backwards != digest.count()) {
    Fail("forwards " + std::to_string(digest.count()) + " entries, backwards " +
         std::to_string(backwards));
  }
  return digest;
}

void Verify(Arguments* arguments, const Settings& settings) {
  const uint64_t seed = arguments->Number("seed", 0);
  const uint64_t to = arguments->Number("to", 0);
  arguments->RefuseUnused();
  const leveldb::Comparator* order = settings.options.comparator;
  const auto less = [order](const std::string& a, const std::string& b) {
    return order->Compare(a, b) < 0;
  };
  std::map<std::string, uint64_t, decltype(less)> state(less);
  std::vector<uint64_t> deleted;
  for (uint64_t i = 0; i < to; i++) {
    const Operation operation = OperationAt(seed, i);
    std::string key = KeyOf(seed, operation.id);
    if (operation.put) {
      state[std::move(key)] = i;
    } else {
      state.erase(key);
      deleted.push_back(operation.id);
    }
  }

  auto db = Open(*arguments, settings);
  std::unique_ptr<leveldb::Iterator> it(db->NewIterator(Careful()));
  Digest digest;
  it->SeekToFirst();
  for (const auto& expected : state) {
    if (!it->Valid()) {
      Check(it->status());
      Fail("forwards: ends before key " + Printable(expected.first));
    }
    if (it->key() != expected.first) {
      Fail("forwards: key " + Printable(it->key()) + ", expected " + Printable(expected.first));
    }
    if (it->value() != ValueOf(seed, expected.second)) {
      Fail("forwards: wrong value of key " + Printable(expected.first) +
           ", last put by operation " + std::to_string(expected.second));
    }
    digest.Add(it->key(), it->value());
    it->Next();
  }
  if (it->Valid()) Fail("forwards: additional key " + Printable(it->key()));
  Check(it->status());

  it->SeekToLast();
  for (auto expected = state.rbegin(); expected != state.rend(); ++expected) {
    if (!it->Valid() || it->key() != expected->first) {
      Check(it->status());
      Fail("backwards: no key " + Printable(expected->first));
    }
    it->Prev();
  }
  if (it->Valid()) Fail("backwards: additional key " + Printable(it->key()));
  Check(it->status());

  uint64_t turn = 0;
  std::string value;
  for (const auto& expected : state) {
    if (turn++ % 5 != 0) continue;
    Check(db->Get(Careful(), expected.first, &value));
    if (value != ValueOf(seed, expected.second))
      Fail("Get: wrong value of key " + Printable(expected.first));
  }
  for (size_t i = 0; i < deleted.size(); i += 5) {
    const std::string key = KeyOf(seed, deleted[i]);
    if (state.count(key) != 0) continue;
    const leveldb::Status status = db->Get(Careful(), key, &value);
    if (!status.IsNotFound()) Fail("Get: deleted key " + Printable(key) + ": " + status.ToString());
  }
  digest.Print();
}

void WriteLength(size_t length) {
  unsigned char bytes[4];
  for (int i = 0; i < 4; i++) bytes[i] = static_cast<unsigned char>(length >> (8 * i));
  std::fwrite(bytes, 1, 4, stdout);
}

void Entries(leveldb::DB* db) {
  std::unique_ptr<leveldb::Iterator> it(db->NewIterator(Careful()));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    WriteLength(it->key().size());
    WriteLength(it->value().size());
    std::fwrite(it->key().data(), 1, it->key().size(), stdout);
    std::fwrite(it->value().data(), 1, it->value().size(), stdout);
  }
  if (!it->status().ok()) {
    std::fprintf(stderr, "error %s\n", it->status().ToString().c_str());
    std::exit(1);
  }
}

void Get(leveldb::DB* db, const std::string& key) {
  std::string value;
  const leveldb::Status status = db->Get(Careful(), key, &value);
  if (status.IsNotFound()) {
    std::puts("missing");
    return;
  }
  Check(status);
  std::fputs("value ", stdout);
  for (const char byte : value) std::printf("%02x", static_cast<unsigned char>(byte));
  std::puts("");
}

void Split(leveldb::DB* db, uint64_t versions) {
  std::vector<const leveldb::Snapshot*> snapshots;
  for (uint64_t version = 0; version < versions; version++) {
    for (const char* key : {"a", "b", "c"}) {
      std::string value = key + Decimal(version);
      value.resize(20000, '.');
      Check(db->Put(leveldb::WriteOptions(), key, value));
      if (key[0] == 'b' && version % 10 == 9) Check(db->Delete(leveldb::WriteOptions(), key));
    }
    snapshots.push_back(db->GetSnapshot());
  }
  db->CompactRange(nullptr, nullptr);
  for (const leveldb::Snapshot* snapshot : snapshots) db->ReleaseSnapshot(snapshot);
}

void HoldOpen() {
  std::puts("locked");
  std::fflush(stdout);
  char ignored[256];
  while (read(STDIN_FILENO, ignored, sizeof ignored) > 0) {}
}

// ---- A death in a manual compaction
// ---------------------------------------------------------------------------------------------

// A disk that takes no more of a MANIFEST once that is wanted.
class StuckManifest : public leveldb::EnvWrapper {
 public:
  StuckManifest() : EnvWrapper(leveldb::Env::Default()) {}

  leveldb::Status NewWritableFile(const std::string& name, leveldb::WritableFile** file) override {
    const leveldb::Status status = target()->NewWritableFile(name, file);
    if (status.ok() && name.find("MANIFEST") != std::string::npos) *file = new File(*file, this);
    return status;
  }

  void Stick() { sticks_ = true; }

  void AwaitEdit() const {
    while (!is_stuck_) usleep(1000);
  }

 private:
  class File : public leveldb::WritableFile {
   public:
    File(leveldb::WritableFile* file, StuckManifest* env) : file_(file), env_(env) {}

    leveldb::Status Append(const leveldb::Slice& data) override {
      if (env_->sticks_) {
        env_->is_stuck_ = true;
        for (;;) pause();
      }
      return file_->Append(data);
    }

    leveldb::Status Close() override { return file_->Close(); }
    leveldb::Status Flush() override { return file_->Flush(); }
    leveldb::Status Sync() override { return file_->Sync(); }

   private:
    std::unique_ptr<leveldb::WritableFile> file_;
    StuckManifest* env_;
  };

  std::atomic<bool> sticks_{false};
  std::atomic<bool> is_stuck_{false};
};

void DieCompacting(const Arguments& arguments, Settings* settings, const std::string& key,
                   const std::string& value) {
  static StuckManifest env;
  settings->options.env = &env;
  leveldb::DB* db = Open(arguments, *settings).release();
  env.Stick();
  std::thread([db] { db->CompactRange(nullptr, nullptr); }).detach();
  env.AwaitEdit();
  leveldb::WriteOptions write;
  write.sync = true;
  Check(db->Put(write, key, value));
  std::puts("done");
  std::fflush(stdout);
  raise(SIGKILL);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  Settings settings(&arguments);
  const std::string& command = arguments.command;
  if (command == "fill") {
    Fill(&arguments, settings);
    return 0;
  }
  if (command == "verify") {
    Verify(&arguments, settings);
    return 0;
  }
  const std::string key = arguments.Hex("key");
  const std::string value = arguments.Hex("value");
  const std::string property = arguments.Text("property", "");
  const uint64_t versions = arguments.Number("to", 0);
  leveldb::WriteOptions write;
  write.sync = arguments.Number("sync", 0) != 0;
  arguments.RefuseUnused();
  if (command == "repair") {
    Check(leveldb::RepairDB(arguments.path, settings.options));
    std::puts("done");
    return 0;
  }
  if (command == "destroy") {
    Check(leveldb::DestroyDB(arguments.path, settings.options));
    std::puts("done");
    return 0;
  }
  if (command == "die-compacting") {
    DieCompacting(arguments, &settings, key, value);
    return 0;
  }
  auto db = Open(arguments, settings);
  if (command == "digest") {
    ReadAll(db.get()).Print();
  } else if (command == "entries") {
    Entries(db.get());
  } else if (command == "get") {
    Get(db.get(), key);
  } else if (command == "put") {
    Check(db->Put(write, key, value));
    std::puts("done");
  } else if (command == "delete") {
    Check(db->Delete(write, key));
    std::puts("done");
  } else if (command == "compact") {
    db->CompactRange(nullptr, nullptr);
    std::puts("done");
  } else if (command == "split") {
    Split(db.get(), versions);
    std::puts("done");
  } else if (command == "property") {
    std::string text;
    std::puts(db->GetProperty(property, &text) ? text.c_str() : "missing");
  } else if (command == "lock") {
    HoldOpen();
  } else if (command == "open") {
    std::puts("done");
  } else {
    Usage("unknown command " + command);
  }
  return 0;
}
