// Random numbers, and the distributions of keys that are made of them.

#ifndef LAB_COMMON_RANDOM_H_
#define LAB_COMMON_RANDOM_H_

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
    state_ += 0x9E3779B97F4A7C15u;
    return Mix(state_);
  }

  // At least 0, below 1.
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
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

}  // namespace lab

#endif  // LAB_COMMON_RANDOM_H_
