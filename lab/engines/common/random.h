// Random numbers, and the distributions of keys that are made of them.

#ifndef LAB_COMMON_RANDOM_H_
#define LAB_COMMON_RANDOM_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace lab {

inline uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// splitmix64: a stream for every benchmark and thread.
class Random {
 public:
  Random(uint64_t seed, uint64_t benchmark, uint64_t thread)
      : state_(Mix(Mix(Mix(seed) + benchmark) + thread)) {}

  uint64_t Next() {
    state_ += kStep;
    return Mix(state_);
  }

  // What Next() returns after `before` more calls.
  uint64_t At(uint64_t before) const { return Mix(state_ + (before + 1) * kStep); }

  // At least 0, below 1.
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15u;
  uint64_t state_;
};

// basho_bench's pareto_int with shape 1.5: keys with a mean of about `fraction` of `num`.
class Pareto {
 public:
  Pareto(uint64_t num, double fraction)
      : num_(num), scale_(static_cast<double>(num) * fraction * 0.5) {}

  uint64_t Next(Random* random) const {
    const double key = std::floor((std::pow(1 - random->Unit(), -1 / 1.5) - 1) * scale_);
    // Fits in 64 bits for every num below 10^9: the greatest factor that a unit number gives is
    // 2^(53/1.5).
    return static_cast<uint64_t>(key) % num_;
  }

 private:
  uint64_t num_;
  double scale_;
};

// Gray et al., "Quickly generating billion-record synthetic databases" (SIGMOD 1994), with YCSB's
// theta.
class Zipfian {
 public:
  explicit Zipfian(uint64_t num) : Zipfian(num, Zeta(num)) {}

  // With a zeta that is known.
  Zipfian(uint64_t num, double zeta) : num_(num), zeta_(zeta) {
    const double zeta_of_two = 1 + std::pow(0.5, kTheta);
    eta_ = (1 - std::pow(2.0 / static_cast<double>(num), 1 - kTheta)) / (1 - zeta_of_two / zeta);
  }

  uint64_t Rank(Random* random) const {
    const double unit = random->Unit();
    const double scaled = unit * zeta_;
    if (scaled < 1) return 0;
    if (scaled < 1 + std::pow(0.5, kTheta)) return num_ > 1 ? 1 : 0;
    const double rank =
        static_cast<double>(num_) * std::pow(eta_ * unit - eta_ + 1, 1 / (1 - kTheta));
    const uint64_t whole = static_cast<uint64_t>(rank);
    return whole < num_ ? whole : num_ - 1;
  }

 private:
  static double Zeta(uint64_t num) {
    double zeta = 0;
    for (uint64_t i = 1; i <= num; i++) zeta += 1 / std::pow(static_cast<double>(i), kTheta);
    return zeta;
  }

  static constexpr double kTheta = 0.99;
  uint64_t num_;
  double zeta_;
  double eta_ = 0;
};

// YCSB's ScrambledZipfianGenerator: ranks among ten billion items, whatever the database holds,
// scattered over its keys.
class ScrambledZipfian {
 public:
  explicit ScrambledZipfian(uint64_t num) : num_(num), ranks_(10000000000, 26.46902820178302) {}

  uint64_t Next(Random* random) const { return Mix(ranks_.Rank(random)) % num_; }

 private:
  uint64_t num_;
  Zipfian ranks_;
};

// RocksDB's model of production traffic: Cao et al., "Characterizing, Modeling, and Benchmarking
// RocksDB Key-Value Workloads at Facebook" (FAST 2020), with the parameters that RocksDB's own
// documentation gives for it. lab/WORKLOADS.md has every formula.
class MixGraph {
 public:
  static constexpr uint64_t kGets = 85;
  static constexpr uint64_t kPuts = 14;

  explicit MixGraph(uint64_t num) : num_(num), range_(std::max<uint64_t>(num / kRanges, 1)) {
    double sum = 0;
    for (uint64_t i = 0; i < kRanges; i++) {
      const double place = static_cast<double>(i + 1);
      sum += 14.18 * std::exp(-2.917 * place) + 0.0164 * std::exp(-0.08082 * place);
      heat_[i] = sum;
    }
  }

  uint64_t Key(Random* random) const {
    const double heat = random->Unit() * heat_[kRanges - 1];
    uint64_t rank = 0;
    while (rank < kRanges - 1 && heat >= heat_[rank]) rank++;
    const uint64_t start = (7 * rank + 3) % kRanges * range_;
    const double place = std::ceil(std::pow(random->Unit() / 0.002312, 1 / 0.3467));
    return (start + Mix(static_cast<uint64_t>(place)) % range_) % num_;
  }

  uint64_t ValueSize(Random* random) const {
    return Pareto(random, 0.2615, 25.45, kGreatestValue);
  }
  uint64_t Steps(Random* random) const { return Pareto(random, 2.517, 14.236, kLongestScan); }

 private:
  static constexpr uint64_t kRanges = 30;
  static constexpr uint64_t kGreatestValue = 1024;
  static constexpr uint64_t kLongestScan = 10000;

  // The generalised Pareto distribution, from 1 to `most`.
  static uint64_t Pareto(Random* random, double k, double sigma, uint64_t most) {
    const double value = sigma * (std::pow(1 - random->Unit(), -k) - 1) / k;
    // At most 2^(53 * k) / k times sigma, which 64 bits do not hold for scans.
    return 1 + static_cast<uint64_t>(std::fmod(value, static_cast<double>(most)));
  }

  uint64_t num_;
  uint64_t range_;
  // What is sought in the ranges up to each, the hottest first.
  std::array<double, kRanges> heat_;
};

}  // namespace lab

#endif  // LAB_COMMON_RANDOM_H_
