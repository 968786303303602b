// The operations of one thread in each benchmark.

#ifndef LAB_COMMON_OPERATIONS_H_
#define LAB_COMMON_OPERATIONS_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "benchmark.h"
#include "data.h"
#include "meter.h"
#include "random.h"
#include "replay.h"
#include "settings.h"
#include "trace.h"

namespace lab {

// State shared by all threads of a benchmark.
struct Task {
  const Benchmark& benchmark;
  const Settings& settings;
  const Pool& pool;
  // Where the latest keys are read most.
  const Zipfian* zipfian;
  // The greatest key there is.
  std::atomic<uint64_t>* newest;
  uint64_t threads;
  // What is replayed, if anything.
  const Trace* trace;

  uint64_t operations() const {
    const uint64_t all = benchmark.CountsReads() ? settings.reads : settings.num;
    return std::max<uint64_t>(all / benchmark.divisor, 1);
  }
};

template <typename Engine>
class Operations {
 public:
  using Session = typename Engine::Session;
  using Cursor = typename Engine::Cursor;

  Operations(const Task& task, uint64_t thread, Session* session, Meter* meter)
      : benchmark_(task.benchmark),
        settings_(task.settings),
        task_(task),
        thread_(thread),
        first_(task.operations() * thread / task.threads),
        end_(task.operations() * (thread + 1) / task.threads),
        range_(RangeOf(task)),
        session_(*session),
        meter_(*meter),
        random_(task.settings.seed, task.benchmark.Stream(), thread),
        filled_(task.settings.seed, Benchmark::kFillRandom, 0),
        pareto_(task.settings.num, task.benchmark.reads_in_100 == 0 ? 0.0001 : 0.2),
        scrambled_(task.settings.num),
        graph_(task.settings.num),
        key_(task.settings.key_size, task.benchmark.keys == Keys::kMissing),
        range_end_(task.settings.key_size, false),
        values_(task.pool, task.benchmark.large_values ? kLargeValue : task.settings.value_size,
                task.benchmark.large_values ? 0 : task.settings.value_size_max) {}

  static constexpr uint64_t kLargeValue = 100000;

  void Run() {
    switch (benchmark_.kind) {
      case Kind::kPut:
        return Each([this](uint64_t i) { Put(NextKey(i)); });
      case Kind::kBatch:
        return Batches();
      case Kind::kDelete:
        return Each([this](uint64_t i) { Delete(NextKey(i)); });
      case Kind::kGet:
      case Kind::kGetWhilePutting:
        return Each([this](uint64_t i) { Get(NextKey(i)); });
      case Kind::kScan:
        return benchmark_.keys == Keys::kReversed ? Scan<false>() : Scan<true>();
      case Kind::kSeek:
        return Each([this](uint64_t i) { Steps(NextKey(i), kSeekSteps, true); });
      case Kind::kMix:
        return Mixed();
      case Kind::kLatest:
        return Each([this](uint64_t) { Latest(); });
      case Kind::kShortScans:
        return Each([this](uint64_t) { ShortScan(); });
      case Kind::kGetAndPut:
        return Each([this](uint64_t i) { GetAndPut(NextKey(i)); });
      case Kind::kQueue:
        return Each([this](uint64_t i) { PutLastTakeFirst(i); });
      case Kind::kMixGraph:
        return Each([this](uint64_t) { GetPutOrScan(); });
      case Kind::kReplay:
        return Replay<Engine>(*task_.trace, task_.pool, &session_).Run(settings_.num, &meter_);
      case Kind::kDeleteRange:
        return Each([this](uint64_t i) { DeleteRange(NextKey(i)); });
      case Kind::kPutExpiring:
        return Each([this](uint64_t i) { Put(NextKey(i)); });
      case Kind::kPutKeyspaces:
      case Kind::kGetKeyspaces:
        return InKeyspaces();
      case Kind::kMultiGet:
        return MultiGets();
      case Kind::kBulkLoad:
        return Load();
      case Kind::kCompact:
      case Kind::kWaitCompact:
      case Kind::kCold:
      case Kind::kCreateKeyspaces:
      case Kind::kSelfTest:
        break;
    }
    throw Failure(std::string(benchmark_.name) + " concerns the whole database");
  }

  // The additional thread of readwhilewriting.
  // Puts at the pace that is asked for, or without pause. What was due while a put lasted is put
  // at once. It puts at least once, however short the reads.
  void PutBesideReaders() {
    const auto begin = std::chrono::steady_clock::now();
    const auto pace = std::chrono::duration<double>(
        settings_.write_rate == 0 ? 0 : 1.0 / static_cast<double>(settings_.write_rate));
    for (uint64_t done = 0;; done++) {
      if (settings_.write_rate != 0) {
        std::this_thread::sleep_until(
            begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(done * pace));
      }
      if (done > 0 && !meter_.GoesOn()) return;
      Put(NextKey(0));
    }
  }

 private:
  static constexpr uint64_t kScanStride = 128;
  static constexpr uint64_t kSeekSteps = 10;
  // Entries in a queue before any is taken out.
  static constexpr uint64_t kQueued = 1000;
  // Keys of a range that is deleted.
  static constexpr uint64_t kRange = 100;
  // Keys that are got at once.
  static constexpr uint64_t kKeysAtOnce = 64;

  static uint64_t RangeOf(const Task& task) {
    if (task.benchmark.large_values) return task.operations();
    if (task.benchmark.keys == Keys::kHot) return std::max<uint64_t>(task.settings.num / 100, 1);
    if (task.benchmark.UsesKeyspaces())
      return std::max<uint64_t>(task.settings.num / task.settings.keyspaces, 1);
    return task.settings.num;
  }

  // `body` once for every operation of this thread, or until time is up.
  template <typename Body>
  void Each(const Body& body) {
    if (settings_.rate > 0) return Paced(body);
    if (benchmark_.timed) {
      while (meter_.GoesOn()) body(0);
      return;
    }
    uint64_t i = first_;
    for (; i < end_ && meter_.GoesOn(); i++) body(i);
    if (i < end_) meter_.Truncate();
  }

  // The same as an open loop: every operation is due at a time of its own, however long those
  // before it took. The threads take turns.
  template <typename Body>
  void Paced(const Body& body) {
    const uint64_t begin = meter_.last();
    const double rate = static_cast<double>(settings_.rate);
    for (uint64_t done = 0; benchmark_.timed || done < end_ - first_; done++) {
      if (!meter_.GoesOn()) {
        if (!benchmark_.timed) meter_.Truncate();
        return;
      }
      const uint64_t place = done * task_.threads + thread_;
      meter_.AwaitDue(begin + static_cast<uint64_t>(1e9 * static_cast<double>(place) / rate));
      body(benchmark_.timed ? 0 : first_ + done);
    }
  }

  uint64_t NextKey(uint64_t i) {
    switch (benchmark_.keys) {
      case Keys::kInOrder:
      case Keys::kReversed:
        return i;
      case Keys::kRandom:
      case Keys::kMissing:
      case Keys::kHot:
        return random_.Next() % range_;
      case Keys::kPut:
        return filled_.At(random_.Next() % range_) % range_;
      case Keys::kPareto:
        return pareto_.Next(&random_);
      case Keys::kZipfian:
        return scrambled_.Next(&random_);
    }
    return i;
  }

  void Put(uint64_t number) {
    const std::string_view key = key_.Set(number);
    const std::string_view value = values_.Next(&random_);
    session_.Put(key, value);
    meter_.End(1, key.size() + value.size());
  }

  void Delete(uint64_t number) {
    const std::string_view key = key_.Set(number);
    session_.Delete(key);
    meter_.End(1, key.size());
  }

  // Returns the bytes read.
  uint64_t Look(std::string_view key) {
    if (!session_.Get(key, &value_)) return 0;
    meter_.Found();
    return key.size() + value_.size();
  }

  void Get(uint64_t number) { meter_.End(1, Look(key_.Set(number))); }

  void GetAndPut(uint64_t number) {
    const bool only_get = random_.Next() % 100 < benchmark_.reads_in_100;
    const std::string_view key = key_.Set(number);
    uint64_t bytes = Look(key);
    if (!only_get) {
      const std::string_view value = values_.Next(&random_);
      session_.Put(key, value);
      bytes += key.size() + value.size();
    }
    meter_.End(1, bytes);
  }

  void Steps(uint64_t number, uint64_t most, bool count_found) {
    const std::string_view target = key_.Set(number);
    uint64_t bytes = 0;
    {
      Cursor cursor(&session_, most);
      bool valid = cursor.Seek(target);
      if (count_found && valid && cursor.key() == target) meter_.Found();
      for (uint64_t step = 0; valid; valid = cursor.Next()) {
        bytes += cursor.key().size() + cursor.value().size();
        if (++step == most) break;
      }
    }
    meter_.End(1, bytes);
  }

  void Mixed() {
    if (benchmark_.reads_in_100 == 0) return Each([this](uint64_t i) { Put(NextKey(i)); });
    if (benchmark_.reads_in_100 == 100) return Each([this](uint64_t i) { Get(NextKey(i)); });
    Each([this](uint64_t i) {
      const bool get = random_.Next() % 100 < benchmark_.reads_in_100;
      const uint64_t key = NextKey(i);
      get ? Get(key) : Put(key);
    });
  }

  void PutNewest() { Put(task_.newest->fetch_add(1, std::memory_order_relaxed) + 1); }

  void Latest() {
    if (random_.Next() % 100 >= benchmark_.reads_in_100) return PutNewest();
    Get(task_.newest->load(std::memory_order_relaxed) - task_.zipfian->Rank(&random_));
  }

  void ShortScan() {
    if (random_.Next() % 100 >= benchmark_.reads_in_100) return PutNewest();
    const uint64_t key = NextKey(0);
    Steps(key, 1 + random_.Next() % 100, false);
  }

  void GetPutOrScan() {
    const uint64_t what = random_.Next() % 100;
    const uint64_t number = graph_.Key(&random_);
    if (what < MixGraph::kGets) return Get(number);
    if (what >= MixGraph::kGets + MixGraph::kPuts) {
      return Steps(number, graph_.Steps(&random_), false);
    }
    const std::string_view key = key_.Set(number);
    const std::string_view value = values_.Cut(graph_.ValueSize(&random_));
    session_.Put(key, value);
    meter_.End(1, key.size() + value.size());
  }

  void PutLastTakeFirst(uint64_t number) {
    const std::string_view key = key_.Set(number);
    const std::string_view value = values_.Next(&random_);
    session_.Put(key, value);
    uint64_t bytes = key.size() + value.size();
    if (number - first_ >= kQueued) {
      bool valid;
      {
        Cursor cursor(&session_, 1);
        valid = cursor.First();
        if (valid) {
          bytes += cursor.key().size() + cursor.value().size();
          first_in_queue_.assign(cursor.key());
        }
      }
      if (valid) {
        meter_.Found();
        session_.Delete(first_in_queue_);
      }
    }
    meter_.End(1, bytes);
  }

  void DeleteRange(uint64_t number) {
    const std::string_view end = range_end_.Set(number + kRange);
    if constexpr (DeletesRanges<Session>) {
      session_.DeleteRange(key_.Set(number), end);
    } else {
      for (uint64_t i = 0; i < kRange; i++) session_.BatchDelete(key_.Set(number + i));
      session_.Commit();
    }
    meter_.End(1, 2 * end.size());
  }

  void InKeyspaces() {
    if constexpr (HasKeyspaces<Engine>) {
      if (benchmark_.kind == Kind::kPutKeyspaces) {
        return Each([this](uint64_t i) {
          const std::string_view key = key_.Set(NextKey(i));
          const std::string_view value = values_.Next(&random_);
          session_.PutIn(i % settings_.keyspaces, key, value);
          meter_.End(1, key.size() + value.size());
        });
      }
      Each([this](uint64_t i) {
        const uint64_t keyspace = random_.Next() % settings_.keyspaces;
        const std::string_view key = key_.Set(NextKey(i));
        const bool found = session_.GetIn(keyspace, key, &value_);
        if (found) meter_.Found();
        meter_.End(1, found ? key.size() + value_.size() : 0);
      });
    }
  }

  void Batches() {
    uint64_t i = first_;
    while (i < end_ && meter_.GoesOn()) {
      const uint64_t count = std::min(settings_.batch, end_ - i);
      uint64_t bytes = 0;
      for (uint64_t n = 0; n < count; n++, i++) {
        const std::string_view key = key_.Set(NextKey(i));
        const std::string_view value = values_.Next(&random_);
        session_.BatchPut(key, value);
        bytes += key.size() + value.size();
      }
      session_.Commit();
      meter_.End(count, bytes);
    }
    if (i < end_) meter_.Truncate();
  }

  void MultiGets() {
    std::vector<Key> keys(kKeysAtOnce, key_);
    std::vector<std::string_view> wanted;
    uint64_t i = first_;
    while (i < end_ && meter_.GoesOn()) {
      const uint64_t count = std::min(kKeysAtOnce, end_ - i);
      wanted.clear();
      for (uint64_t n = 0; n < count; n++, i++) wanted.push_back(keys[n].Set(NextKey(i)));
      uint64_t bytes = 0;
      if constexpr (GetsMany<Session>) {
        session_.MultiGet(wanted, [&](std::string_view key, std::string_view value) {
          meter_.Found();
          bytes += key.size() + value.size();
        });
      } else {
        for (const std::string_view key : wanted) bytes += Look(key);
      }
      meter_.End(count, bytes);
    }
    if (i < end_) meter_.Truncate();
  }

  template <bool kForwards>
  void Scan() {
    const uint64_t most = end_ - first_;
    Cursor cursor(&session_, most);
    bool valid = most > 0 && (kForwards ? cursor.First() : cursor.Last());
    uint64_t left = most;
    while (valid && left > 0 && meter_.GoesOn()) {
      uint64_t steps = 0;
      uint64_t bytes = 0;
      while (valid && steps < kScanStride && left > 0) {
        bytes += cursor.key().size() + cursor.value().size();
        steps++;
        left--;
        if (left > 0) valid = kForwards ? cursor.Next() : cursor.Prev();
      }
      meter_.EndSteps(steps, bytes);
    }
    if (valid && left > 0) meter_.Truncate();
  }

  void Load() {
    typename Engine::Loader loader(&session_);
    Each([&](uint64_t i) {
      const std::string_view key = key_.Set(i);
      const std::string_view value = values_.Next(&random_);
      loader.Put(key, value);
      meter_.End(1, key.size() + value.size());
    });
    loader.Finish();
    meter_.End(0, 0);
  }

  const Benchmark& benchmark_;
  const Settings& settings_;
  const Task& task_;
  const uint64_t thread_;
  const uint64_t first_;
  const uint64_t end_;
  const uint64_t range_;
  Session& session_;
  Meter& meter_;
  Random random_;
  // What fillrandom drew, to be read again.
  const Random filled_;
  const Pareto pareto_;
  const ScrambledZipfian scrambled_;
  const MixGraph graph_;
  Key key_;
  // The end of a range that is deleted.
  Key range_end_;
  Values values_;
  std::string value_;
  std::string first_in_queue_;
};

}  // namespace lab

#endif  // LAB_COMMON_OPERATIONS_H_
