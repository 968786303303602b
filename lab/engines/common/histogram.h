// Latencies: counted by the thread that measures them, read by others at any time.

#ifndef LAB_COMMON_HISTOGRAM_H_
#define LAB_COMMON_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lab {

// A number that one thread changes and others look at. Costs its owner what a plain variable costs.
class Counter {
 public:
  void Add(uint64_t amount) { value_.store(Get() + amount, std::memory_order_relaxed); }
  void Raise(uint64_t value) {
    if (value > Get()) value_.store(value, std::memory_order_relaxed);
  }
  uint64_t Get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// 32 buckets for every power of two of nanoseconds: values below 32 have their own, the others an
// error below 3%.
struct Buckets {
  static constexpr size_t kCount = 60 * 32;

  static size_t IndexOf(uint64_t nanos) {
    if (nanos < 32) return nanos;
    const int exponent = 63 - __builtin_clzll(nanos);
    return static_cast<size_t>(exponent - 4) * 32 + ((nanos >> (exponent - 5)) & 31);
  }

  static double MiddleOf(size_t index) {
    if (index < 32) return static_cast<double>(index);
    const int shift = static_cast<int>(index / 32) - 1;
    return (static_cast<double>(32 + index % 32) + 0.5) * static_cast<double>(uint64_t{1} << shift);
  }
};

// A thread's histogram while it works.
class LiveHistogram {
 public:
  void Add(uint64_t nanos, uint64_t times = 1) {
    counts_[Buckets::IndexOf(nanos)].Add(times);
    total_nanos_.Add(nanos * times);
    greatest_.Raise(nanos);
  }

 private:
  friend class Histogram;
  std::array<Counter, Buckets::kCount> counts_;
  Counter total_nanos_;
  Counter greatest_;
};

// The sum of several threads' latencies, or what came in between two such sums.
class Histogram {
 public:
  void Add(const LiveHistogram& live) {
    for (size_t i = 0; i < counts_.size(); i++) {
      const uint64_t count = live.counts_[i].Get();
      counts_[i] += count;
      total_ += count;
    }
    total_nanos_ += live.total_nanos_.Get();
    greatest_ = std::max(greatest_, live.greatest_.Get());
  }

  // The samples since `before` was taken. The greatest latency is then known as exactly as its
  // bucket, no better.
  Histogram Since(const Histogram& before) const {
    Histogram since;
    size_t last = 0;
    for (size_t i = 0; i < counts_.size(); i++) {
      since.counts_[i] = counts_[i] - before.counts_[i];
      since.total_ += since.counts_[i];
      if (since.counts_[i] != 0) last = i;
    }
    since.total_nanos_ = total_nanos_ - before.total_nanos_;
    since.greatest_ =
        greatest_ > before.greatest_ ? greatest_ : static_cast<uint64_t>(Buckets::MiddleOf(last));
    return since;
  }

  double MeanMicros() const {
    return total_ == 0 ? 0 : static_cast<double>(total_nanos_) / static_cast<double>(total_) / 1000;
  }

  double MicrosAt(double quantile) const {
    const uint64_t rank = static_cast<uint64_t>(quantile * static_cast<double>(total_));
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); i++) {
      seen += counts_[i];
      if (seen > rank) return std::min(Buckets::MiddleOf(i), static_cast<double>(greatest_)) / 1000;
    }
    return MaxMicros();
  }

  double MaxMicros() const { return static_cast<double>(greatest_) / 1000; }

 private:
  std::array<uint64_t, Buckets::kCount> counts_{};
  uint64_t total_ = 0;
  uint64_t total_nanos_ = 0;
  uint64_t greatest_ = 0;
};

}  // namespace lab

#endif  // LAB_COMMON_HISTOGRAM_H_
