// The lab's engine program for the real LevelDB. What it does, under which flags, and what it prints is specified in
// lab/WORKLOADS.md.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

namespace {

constexpr size_t kKeyLength = 16;
constexpr int kScanStride = 128;
constexpr int kSeekSteps = 10;

const char* const kBenchmarks[] = {
    "fillseq",     "fillrandom", "overwrite",  "fillseqbatch",     "fillrandbatch", "fillsync",     "fill100K",
    "fill100Krandom", "readseq", "readreverse", "readrandom",      "readmissing",   "readhot",      "seekrandom",
    "readwhilewriting", "deleteseq", "deleterandom", "compact",    "waitcompact",
};

[[noreturn]] void Die(const std::string& problem) {
  std::fprintf(stderr, "leveldb bench: %s\n", problem.c_str());
  std::exit(2);
}

void Check(const leveldb::Status& status) {
  if (!status.ok()) Die(status.ToString());
}

// ---- Settings -----------------------------------------------------------------------------------------------------

struct Settings {
  std::vector<std::string> benchmarks = {"fillseq", "readrandom", "readseq"};
  uint64_t num = 1000000;
  uint64_t reads = 0;
  uint64_t value_size = 100;
  uint64_t threads = 1;
  uint64_t batch = 1000;
  uint64_t cache_size = 8 << 20;
  uint64_t write_buffer_size = 4 << 20;
  uint64_t bloom_bits = 0;
  uint64_t seed = 301;
  bool snappy = true;
  bool json = false;
  std::string db = "/tmp/lab-leveldb";
};

Settings ParseSettings(int argc, char** argv) {
  Settings settings;
  const std::map<std::string, uint64_t*> numbers = {
      {"num", &settings.num},
      {"reads", &settings.reads},
      {"value_size", &settings.value_size},
      {"threads", &settings.threads},
      {"batch", &settings.batch},
      {"cache_size", &settings.cache_size},
      {"write_buffer_size", &settings.write_buffer_size},
      {"bloom_bits", &settings.bloom_bits},
      {"seed", &settings.seed},
  };
  for (int i = 1; i < argc; i++) {
    const std::string argument = argv[i];
    if (argument == "--version") {
      std::printf("leveldb %d.%d\n", leveldb::kMajorVersion, leveldb::kMinorVersion);
      std::exit(0);
    }
    if (argument == "--json") {
      settings.json = true;
      continue;
    }
    const size_t equals = argument.find('=');
    if (argument.compare(0, 2, "--") != 0 || equals == std::string::npos) Die("cannot read " + argument);
    const std::string name = argument.substr(2, equals - 2);
    const std::string value = argument.substr(equals + 1);
    const auto number = numbers.find(name);
    if (number != numbers.end()) {
      char* end = nullptr;
      *number->second = std::strtoull(value.c_str(), &end, 10);
      if (value.empty() || *end != '\0') Die("--" + name + " wants a number");
    } else if (name == "benchmarks") {
      settings.benchmarks.clear();
      for (size_t at = 0; at <= value.size();) {
        const size_t comma = std::min(value.find(',', at), value.size());
        settings.benchmarks.push_back(value.substr(at, comma - at));
        at = comma + 1;
      }
    } else if (name == "compression" && (value == "snappy" || value == "none")) {
      settings.snappy = value == "snappy";
    } else if (name == "db") {
      settings.db = value;
    } else {
      Die("cannot read " + argument);
    }
  }
  if (settings.num == 0 || settings.threads == 0 || settings.batch == 0 || settings.value_size == 0) {
    Die("--num, --threads, --batch and --value_size must be at least 1");
  }
  if (settings.reads == 0) settings.reads = settings.num;
  return settings;
}

// ---- Data ---------------------------------------------------------------------------------------------------------

uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

class Random {
 public:
  Random(uint64_t seed, uint64_t benchmark, uint64_t thread) : state_(Mix(Mix(Mix(seed) + benchmark) + thread)) {}

  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    return Mix(state_);
  }

 private:
  uint64_t state_;
};

// A key and its buffer; room for the '.' of a missing key.
class Key {
 public:
  explicit Key(bool missing) : length_(kKeyLength + (missing ? 1 : 0)) { bytes_[kKeyLength] = '.'; }

  leveldb::Slice Set(uint64_t number) {
    for (size_t i = kKeyLength; i-- > 0;) {
      bytes_[i] = static_cast<char>('0' + number % 10);
      number /= 10;
    }
    return leveldb::Slice(bytes_, length_);
  }

 private:
  char bytes_[kKeyLength + 1];
  size_t length_;
};

class Values {
 public:
  Values(uint64_t seed, size_t value_size) : value_size_(value_size) {
    const size_t size = std::max<size_t>(1 << 20, 16 * value_size);
    Random random(seed, 0, 0);
    pool_.reserve(size + 100);
    while (pool_.size() < size) {
      std::string half;
      for (int i = 0; i < 50; i++) half.push_back(static_cast<char>(' ' + random.Next() % 95));
      pool_ += half;
      pool_ += half;
    }
    pool_.resize(size);
  }

  leveldb::Slice At(size_t* position) const {
    if (*position + value_size_ > pool_.size()) *position = 0;
    const leveldb::Slice value(pool_.data() + *position, value_size_);
    *position += value_size_;
    return value;
  }

 private:
  size_t value_size_;
  std::string pool_;
};

// ---- Measuring ----------------------------------------------------------------------------------------------------

uint64_t NowNanos() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// 32 buckets for every power of two.
class Histogram {
 public:
  Histogram() : counts_(64 * 32, 0) {}

  void Add(uint64_t nanos, uint64_t times = 1) {
    counts_[IndexOf(nanos)] += times;
    total_ += times;
    max_ = std::max(max_, nanos);
  }

  void Merge(const Histogram& other) {
    for (size_t i = 0; i < counts_.size(); i++) counts_[i] += other.counts_[i];
    total_ += other.total_;
    max_ = std::max(max_, other.max_);
  }

  double MicrosAt(double quantile) const {
    const uint64_t rank = static_cast<uint64_t>(quantile * static_cast<double>(total_));
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); i++) {
      seen += counts_[i];
      if (seen > rank) return std::min(MiddleOf(i), static_cast<double>(max_)) / 1000;
    }
    return static_cast<double>(max_) / 1000;
  }

  double MaxMicros() const { return static_cast<double>(max_) / 1000; }

 private:
  static size_t IndexOf(uint64_t nanos) {
    if (nanos < 32) return nanos;
    const int exponent = 63 - __builtin_clzll(nanos);
    return static_cast<size_t>(exponent - 4) * 32 + ((nanos >> (exponent - 5)) & 31);
  }

  static double MiddleOf(size_t index) {
    if (index < 32) return static_cast<double>(index);
    const int shift = static_cast<int>(index / 32) - 1;
    return (static_cast<double>(32 + index % 32) + 0.5) * static_cast<double>(1ull << shift);
  }

  std::vector<uint64_t> counts_;
  uint64_t total_ = 0;
  uint64_t max_ = 0;
};

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct BytesWritten {
  uint64_t by_calls = 0;
  uint64_t to_storage = 0;

  static BytesWritten Now() {
    BytesWritten now;
    if (FILE* file = std::fopen("/proc/self/io", "r")) {
      char line[128];
      while (std::fgets(line, sizeof line, file) != nullptr) {
        unsigned long long number;
        if (std::sscanf(line, "wchar: %llu", &number) == 1) now.by_calls = number;
        if (std::sscanf(line, "write_bytes: %llu", &number) == 1) now.to_storage = number;
      }
      std::fclose(file);
    }
    return now;
  }

  uint64_t Since(const BytesWritten& start) const {
    return std::max(by_calls - start.by_calls, to_storage - start.to_storage);
  }
};

uint64_t DiskBytes(const std::string& path) {
  uint64_t bytes = 0;
  if (DIR* dir = opendir(path.c_str())) {
    while (const dirent* entry = readdir(dir)) {
      struct stat info;
      if (stat((path + "/" + entry->d_name).c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
        bytes += static_cast<uint64_t>(info.st_blocks) * 512;
      }
    }
    closedir(dir);
  }
  return bytes;
}

// What one thread of a benchmark did.
struct Work {
  uint64_t operations = 0;
  uint64_t bytes = 0;
  uint64_t found = 0;
  Histogram latencies;
  uint64_t last = 0;

  void Begin() { last = NowNanos(); }

  // One call to the engine ended that did `count` operations.
  void End(uint64_t count) {
    const uint64_t now = NowNanos();
    latencies.Add(now - last);
    last = now;
    operations += count;
  }

  // `count` steps of a scan ended.
  void EndSteps(uint64_t count) {
    if (count == 0) return;
    const uint64_t now = NowNanos();
    latencies.Add((now - last) / count, count);
    last = now;
    operations += count;
  }
};

// ---- The benchmarks -----------------------------------------------------------------------------------------------

class Bench {
 public:
  explicit Bench(const Settings& settings)
      : settings_(settings),
        cache_(leveldb::NewLRUCache(settings.cache_size)),
        filter_(settings.bloom_bits != 0 ? leveldb::NewBloomFilterPolicy(static_cast<int>(settings.bloom_bits)) : nullptr),
        small_values_(settings.seed, settings.value_size),
        large_values_(settings.seed, 100000) {
    options_.create_if_missing = true;
    options_.block_cache = cache_.get();
    options_.filter_policy = filter_.get();
    options_.write_buffer_size = settings.write_buffer_size;
    options_.compression = settings.snappy ? leveldb::kSnappyCompression : leveldb::kNoCompression;
  }

  void Run(const std::string& name);

 private:
  using Body = std::function<void(uint64_t thread, Work* work)>;

  void Open() {
    leveldb::DB* db = nullptr;
    Check(leveldb::DB::Open(options_, settings_.db, &db));
    db_.reset(db);
  }

  void StartEmpty() {
    db_.reset();
    Check(leveldb::DestroyDB(settings_.db, options_));
    cache_.reset(leveldb::NewLRUCache(settings_.cache_size));
    options_.block_cache = cache_.get();
    Open();
  }

  uint64_t First(uint64_t operations, uint64_t thread) const { return operations * thread / settings_.threads; }

  void Put(uint64_t operations, uint64_t key_range, bool sequential, uint64_t batch, bool sync, const Values& values,
           size_t value_size, uint64_t thread, Work* work);
  void Delete(bool sequential, uint64_t thread, Work* work);
  void Read(uint64_t key_range, bool missing, uint64_t thread, Work* work);
  void Scan(bool forwards, uint64_t thread, Work* work);
  void Seek(uint64_t thread, Work* work);
  void WaitUntilIdle();
  void Measure(const std::string& name, uint64_t threads, const Body& body, const Body& beside);
  void Report(const std::string& name, uint64_t threads, double seconds, double cpu, uint64_t written, const Work& work,
              double beside_rate, bool has_beside, bool has_found);

  const Settings settings_;
  leveldb::Options options_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  Values small_values_;
  Values large_values_;
  std::unique_ptr<leveldb::DB> db_;
  uint64_t number_ = 0;
  std::atomic<bool> readers_done_{false};
};

void Bench::Put(uint64_t operations, uint64_t key_range, bool sequential, uint64_t batch_size, bool sync,
                const Values& values, size_t value_size, uint64_t thread, Work* work) {
  Random random(settings_.seed, number_, thread);
  Key key(false);
  size_t position = 0;
  leveldb::WriteOptions options;
  options.sync = sync;
  leveldb::WriteBatch batch;
  const uint64_t end = First(operations, thread + 1);
  for (uint64_t i = First(operations, thread); i < end;) {
    if (batch_size == 1) {
      Check(db_->Put(options, key.Set(sequential ? i : random.Next() % key_range), values.At(&position)));
      work->bytes += kKeyLength + value_size;
      work->End(1);
      i++;
      continue;
    }
    batch.Clear();
    const uint64_t count = std::min(batch_size, end - i);
    for (uint64_t n = 0; n < count; n++, i++) {
      batch.Put(key.Set(sequential ? i : random.Next() % key_range), values.At(&position));
    }
    Check(db_->Write(options, &batch));
    work->bytes += count * (kKeyLength + value_size);
    work->End(count);
  }
}

void Bench::Delete(bool sequential, uint64_t thread, Work* work) {
  Random random(settings_.seed, number_, thread);
  Key key(false);
  for (uint64_t i = First(settings_.num, thread); i < First(settings_.num, thread + 1); i++) {
    Check(db_->Delete(leveldb::WriteOptions(), key.Set(sequential ? i : random.Next() % settings_.num)));
    work->bytes += kKeyLength;
    work->End(1);
  }
}

void Bench::Read(uint64_t key_range, bool missing, uint64_t thread, Work* work) {
  Random random(settings_.seed, number_, thread);
  Key key(missing);
  std::string value;
  for (uint64_t i = First(settings_.reads, thread); i < First(settings_.reads, thread + 1); i++) {
    const leveldb::Status status = db_->Get(leveldb::ReadOptions(), key.Set(random.Next() % key_range), &value);
    if (status.ok()) {
      work->found++;
      work->bytes += kKeyLength + value.size();
    } else if (!status.IsNotFound()) {
      Check(status);
    }
    work->End(1);
  }
}

void Bench::Scan(bool forwards, uint64_t thread, Work* work) {
  uint64_t left = First(settings_.reads, thread + 1) - First(settings_.reads, thread);
  std::unique_ptr<leveldb::Iterator> it(db_->NewIterator(leveldb::ReadOptions()));
  uint64_t steps = 0;
  for (forwards ? it->SeekToFirst() : it->SeekToLast(); it->Valid() && left > 0; left--) {
    work->bytes += it->key().size() + it->value().size();
    if (++steps == kScanStride) {
      work->EndSteps(steps);
      steps = 0;
    }
    forwards ? it->Next() : it->Prev();
  }
  work->EndSteps(steps);
  Check(it->status());
}

void Bench::Seek(uint64_t thread, Work* work) {
  Random random(settings_.seed, number_, thread);
  Key key(false);
  for (uint64_t i = First(settings_.reads, thread); i < First(settings_.reads, thread + 1); i++) {
    std::unique_ptr<leveldb::Iterator> it(db_->NewIterator(leveldb::ReadOptions()));
    const leveldb::Slice target = key.Set(random.Next() % settings_.num);
    it->Seek(target);
    if (it->Valid() && it->key() == target) work->found++;
    for (int step = 0; step < kSeekSteps && it->Valid(); step++) {
      work->bytes += it->key().size() + it->value().size();
      it->Next();
    }
    Check(it->status());
    it.reset();
    work->End(1);
  }
}

// LevelDB cannot be asked whether it is busy: it is idle when its process no longer uses the processor.
void Bench::WaitUntilIdle() {
  int quiet = 0;
  while (quiet < 3) {
    const double before = CpuSeconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    quiet = CpuSeconds() - before < 0.002 ? quiet + 1 : 0;
  }
}

void Bench::Measure(const std::string& name, uint64_t threads, const Body& body, const Body& beside) {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t ready = 0;
  bool started = false;
  readers_done_ = false;
  const uint64_t all = threads + (beside ? 1 : 0);
  std::vector<Work> works(all);
  std::vector<std::thread> running;
  for (uint64_t thread = 0; thread < all; thread++) {
    running.emplace_back([&, thread] {
      {
        std::unique_lock<std::mutex> lock(mutex);
        ready++;
        changed.notify_all();
        changed.wait(lock, [&] { return started; });
      }
      works[thread].Begin();
      (thread < threads ? body : beside)(thread, &works[thread]);
    });
  }
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return ready == all; });
  }
  const double cpu = CpuSeconds();
  const BytesWritten written = BytesWritten::Now();
  const uint64_t start = NowNanos();
  {
    std::lock_guard<std::mutex> lock(mutex);
    started = true;
  }
  changed.notify_all();
  for (uint64_t thread = 0; thread < threads; thread++) running[thread].join();
  const double seconds = 1e-9 * static_cast<double>(NowNanos() - start);
  readers_done_ = true;
  for (uint64_t thread = threads; thread < all; thread++) running[thread].join();

  Work total;
  for (uint64_t thread = 0; thread < threads; thread++) {
    total.operations += works[thread].operations;
    total.bytes += works[thread].bytes;
    total.found += works[thread].found;
    total.latencies.Merge(works[thread].latencies);
  }
  const double beside_rate = beside ? static_cast<double>(works.back().operations) / seconds : 0;
  const bool has_found = name.compare(0, 4, "read") == 0 && name != "readseq" && name != "readreverse";
  Report(name, threads, seconds, CpuSeconds() - cpu, BytesWritten::Now().Since(written), total, beside_rate,
         static_cast<bool>(beside), has_found || name == "seekrandom");
}

void Bench::Report(const std::string& name, uint64_t threads, double seconds, double cpu, uint64_t written,
                   const Work& work, double beside_rate, bool has_beside, bool has_found) {
  const double operations = static_cast<double>(std::max<uint64_t>(work.operations, 1));
  const double micros = 1e6 * seconds * static_cast<double>(threads) / operations;
  const double megabytes = static_cast<double>(work.bytes) / 1048576 / seconds;
  if (!settings_.json) {
    std::printf("%-16s : %11.3f micros/op; %10.0f ops/s; %8.1f MB/s", name.c_str(), micros, operations / seconds, megabytes);
    if (has_found) std::printf(" (%llu found)", static_cast<unsigned long long>(work.found));
    if (has_beside) std::printf(" (writer %.0f ops/s)", beside_rate);
    std::printf("\n");
    std::fflush(stdout);
    return;
  }
  std::printf(
      "{\"benchmark\":\"%s\",\"engine\":\"leveldb\",\"ops\":%llu,\"seconds\":%.6f,\"micros_per_op\":%.4f,"
      "\"ops_per_sec\":%.1f,\"mb_per_sec\":%.2f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"p999_us\":%.3f,\"max_us\":%.3f,"
      "\"cpu_seconds\":%.3f,\"bytes_written\":%llu,\"disk_bytes\":%llu",
      name.c_str(), static_cast<unsigned long long>(work.operations), seconds, micros, operations / seconds, megabytes,
      work.latencies.MicrosAt(0.5), work.latencies.MicrosAt(0.99), work.latencies.MicrosAt(0.999),
      work.latencies.MaxMicros(), cpu, static_cast<unsigned long long>(written),
      static_cast<unsigned long long>(DiskBytes(settings_.db)));
  if (has_found) std::printf(",\"found\":%llu", static_cast<unsigned long long>(work.found));
  if (has_beside) std::printf(",\"writer_ops_per_sec\":%.1f", beside_rate);
  std::printf("}\n");
  std::fflush(stdout);
}

void Bench::Run(const std::string& name) {
  const auto* known = std::find(std::begin(kBenchmarks), std::end(kBenchmarks), name);
  if (known == std::end(kBenchmarks)) Die("unknown benchmark " + name);
  number_ = static_cast<uint64_t>(known - std::begin(kBenchmarks)) + 1;
  const uint64_t num = settings_.num;
  const uint64_t threads = settings_.threads;
  const bool fill = name.compare(0, 4, "fill") == 0;
  if (fill) {
    StartEmpty();
  } else if (db_ == nullptr) {
    Open();
  }

  const auto put = [&](uint64_t operations, bool sequential, uint64_t batch, bool sync, bool large) {
    const Values& values = large ? large_values_ : small_values_;
    const size_t size = large ? 100000 : settings_.value_size;
    const uint64_t range = large ? operations : num;
    Measure(name, threads, [&, operations, sequential, batch, sync, size, range](uint64_t thread, Work* work) {
      Put(operations, range, sequential, batch, sync, values, size, thread, work);
    }, nullptr);
  };
  const auto run = [&](const Body& body) { Measure(name, threads, body, nullptr); };
  const auto once = [&](const std::function<void()>& body) {
    Measure(name, 1, [&](uint64_t, Work* work) {
      body();
      work->End(1);
    }, nullptr);
  };
  const uint64_t large_num = std::max<uint64_t>(num / 1000, 1);

  if (name == "fillseq") {
    put(num, true, 1, false, false);
  } else if (name == "fillrandom" || name == "overwrite") {
    put(num, false, 1, false, false);
  } else if (name == "fillseqbatch") {
    put(num, true, settings_.batch, false, false);
  } else if (name == "fillrandbatch") {
    put(num, false, settings_.batch, false, false);
  } else if (name == "fillsync") {
    put(std::max<uint64_t>(num / 100, 1), false, 1, true, false);
  } else if (name == "fill100K") {
    put(large_num, true, 1, false, true);
  } else if (name == "fill100Krandom") {
    put(large_num, false, 1, false, true);
  } else if (name == "readseq" || name == "readreverse") {
    run([&](uint64_t thread, Work* work) { Scan(name == "readseq", thread, work); });
  } else if (name == "readrandom" || name == "readmissing") {
    run([&](uint64_t thread, Work* work) { Read(num, name == "readmissing", thread, work); });
  } else if (name == "readhot") {
    run([&](uint64_t thread, Work* work) { Read(std::max<uint64_t>(num / 100, 1), false, thread, work); });
  } else if (name == "seekrandom") {
    run([&](uint64_t thread, Work* work) { Seek(thread, work); });
  } else if (name == "readwhilewriting") {
    Measure(name, threads, [&](uint64_t thread, Work* work) { Read(num, false, thread, work); },
            [&](uint64_t thread, Work* work) {
              Random random(settings_.seed, number_, thread);
              Key key(false);
              size_t position = 0;
              while (!readers_done_.load(std::memory_order_relaxed)) {
                Check(db_->Put(leveldb::WriteOptions(), key.Set(random.Next() % num), small_values_.At(&position)));
                work->End(1);
              }
            });
  } else if (name == "deleteseq" || name == "deleterandom") {
    run([&](uint64_t thread, Work* work) { Delete(name == "deleteseq", thread, work); });
  } else if (name == "compact") {
    once([&] { db_->CompactRange(nullptr, nullptr); });
  } else {
    once([&] { WaitUntilIdle(); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = ParseSettings(argc, argv);
  Bench bench(settings);
  for (const std::string& name : settings.benchmarks) bench.Run(name);
  return 0;
}
