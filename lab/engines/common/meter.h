// Counts the work of one thread of a benchmark.

#ifndef LAB_COMMON_METER_H_
#define LAB_COMMON_METER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "histogram.h"
#include "resources.h"

namespace lab {

// When a benchmark has to end, as a time of NowNanos. 0 stops everybody.
using Deadline = std::atomic<uint64_t>;

// Written by its thread; the counters may be read by others at any time.
class alignas(128) Meter {
 public:
  explicit Meter(const Deadline* deadline) : deadline_(deadline) {}

  void Begin() { last_ = NowNanos(); }

  // Waits until an operation is due. Its latency counts from then if the one before it was still
  // running, and else from when the thread woke up: that delay is the machine's.
  void AwaitDue(uint64_t due) {
    if (last_ < due) {
      std::this_thread::sleep_until(
          std::chrono::steady_clock::time_point(std::chrono::nanoseconds(due)));
      last_ = NowNanos();
    } else {
      last_ = due;
    }
  }

  // A call to the engine ended that did `count` operations on `bytes` of keys and values.
  // Nothing was done in the last `idle` nanoseconds of it, which do not count.
  void End(uint64_t count, uint64_t bytes, uint64_t idle = 0) {
    const uint64_t now = NowNanos() - idle;
    latencies_.Add(now - last_);
    last_ = now;
    operations_.Add(count);
    bytes_ += bytes;
  }

  // `count` steps of a scan ended: too short to be timed one by one.
  void EndSteps(uint64_t count, uint64_t bytes) {
    if (count == 0) return;
    const uint64_t now = NowNanos();
    latencies_.Add((now - last_) / count, count);
    last_ = now;
    operations_.Add(count);
    bytes_ += bytes;
  }

  void Found() { found_++; }

  // Whether there was time left when the last operation ended.
  bool GoesOn() const { return last_ < deadline_->load(std::memory_order_relaxed); }

  void Truncate() { truncated_ = true; }

  uint64_t operations() const { return operations_.Get(); }
  const LiveHistogram& latencies() const { return latencies_; }

  // The rest is for after the thread has ended.
  uint64_t bytes() const { return bytes_; }
  uint64_t found() const { return found_; }
  uint64_t last() const { return last_; }
  bool truncated() const { return truncated_; }

 private:
  const Deadline* deadline_;
  uint64_t last_ = 0;
  uint64_t bytes_ = 0;
  uint64_t found_ = 0;
  bool truncated_ = false;
  Counter operations_;
  LiveHistogram latencies_;
};

}  // namespace lab

#endif  // LAB_COMMON_METER_H_
