// The benchmarks by name and number.

#ifndef LAB_COMMON_BENCHMARK_H_
#define LAB_COMMON_BENCHMARK_H_

#include <cstdint>
#include <string>

#include "failure.h"

namespace lab {

enum class Kind {
  kPut,
  kBatch,
  kDelete,
  kGet,
  kScan,
  kSeek,
  kGetWhilePutting,
  kMix,
  kLatest,
  kShortScans,
  kGetAndPut,
  kQueue,
  kMixGraph,
  kReplay,
  kDeleteRange,
  kPutExpiring,
  kCreateKeyspaces,
  kPutKeyspaces,
  kGetKeyspaces,
  kMultiGet,
  kBulkLoad,
  kCompact,
  kWaitCompact,
  kCold,
  kSelfTest,
};

enum class Keys { kInOrder, kReversed, kRandom, kMissing, kHot, kPut, kPareto, kZipfian };

struct Benchmark {
  const char* name;
  uint64_t number;
  Kind kind;
  Keys keys;
  // Begins with an empty database.
  bool empty;
  // Of num, or of reads where it reads; at least one.
  uint64_t divisor;
  bool synchronous;
  bool large_values;
  // Runs for --duration.
  bool timed;
  // Of a mix: how many operations in a hundred are gets, or scans.
  uint64_t reads_in_100;

  // Whether the report says how many keys were found.
  bool ReportsFound() const {
    return kind == Kind::kGet || kind == Kind::kSeek || kind == Kind::kGetWhilePutting ||
           kind == Kind::kGetAndPut || kind == Kind::kLatest || kind == Kind::kQueue ||
           kind == Kind::kMixGraph || kind == Kind::kReplay || kind == Kind::kGetKeyspaces ||
           kind == Kind::kMultiGet ||
           (kind == Kind::kMix && reads_in_100 > 0);
  }

  bool CountsReads() const {
    return kind == Kind::kGet || kind == Kind::kScan || kind == Kind::kSeek ||
           kind == Kind::kGetWhilePutting || kind == Kind::kGetKeyspaces ||
           kind == Kind::kMultiGet;
  }

  bool UsesKeyspaces() const {
    return kind == Kind::kCreateKeyspaces || kind == Kind::kPutKeyspaces ||
           kind == Kind::kGetKeyspaces;
  }

  // One call that concerns the whole database.
  bool WholeDatabase() const {
    return kind == Kind::kCompact || kind == Kind::kWaitCompact || kind == Kind::kCold ||
           kind == Kind::kCreateKeyspaces || kind == Kind::kSelfTest;
  }

  // Seeds its random numbers: the place in the table, but fillrandbatch puts what fillrandom puts.
  uint64_t Stream() const { return number == kFillRandBatch ? kFillRandom : number; }

  static constexpr uint64_t kFillRandom = 2;
  static constexpr uint64_t kFillRandBatch = 5;

  // Done by one thread, whatever --threads says.
  bool Single() const {
    return WholeDatabase() || kind == Kind::kBulkLoad || kind == Kind::kReplay;
  }
};

// clang-format off
inline constexpr Benchmark kBenchmarks[] = {
    // name, number, kind, keys, empty, divisor, synchronous, large, timed, reads in 100
  {"fillseq", 1, Kind::kPut, Keys::kInOrder, true, 1, false, false, false, 0},
  {"fillrandom", 2, Kind::kPut, Keys::kRandom, true, 1, false, false, false, 0},
  {"overwrite", 3, Kind::kPut, Keys::kRandom, false, 1, false, false, false, 0},
  {"fillseqbatch", 4, Kind::kBatch, Keys::kInOrder, true, 1, false, false, false, 0},
  {"fillrandbatch", 5, Kind::kBatch, Keys::kRandom, true, 1, false, false, false, 0},
  {"fillsync", 6, Kind::kPut, Keys::kRandom, true, 100, true, false, false, 0},
  {"fill100K", 7, Kind::kPut, Keys::kInOrder, true, 1000, false, true, false, 0},
  {"fill100Krandom", 8, Kind::kPut, Keys::kRandom, true, 1000, false, true, false, 0},
  {"readseq", 9, Kind::kScan, Keys::kInOrder, false, 1, false, false, false, 100},
  {"readreverse", 10, Kind::kScan, Keys::kReversed, false, 1, false, false, false, 100},
  {"readrandom", 11, Kind::kGet, Keys::kRandom, false, 1, false, false, false, 100},
  {"readmissing", 12, Kind::kGet, Keys::kMissing, false, 1, false, false, false, 100},
  {"readhot", 13, Kind::kGet, Keys::kHot, false, 1, false, false, false, 100},
  {"seekrandom", 14, Kind::kSeek, Keys::kRandom, false, 1, false, false, false, 100},
  {"readwhilewriting", 15, Kind::kGetWhilePutting, Keys::kRandom, false, 1, false, false, false, 100},
  {"deleteseq", 16, Kind::kDelete, Keys::kInOrder, false, 1, false, false, false, 0},
  {"deleterandom", 17, Kind::kDelete, Keys::kRandom, false, 1, false, false, false, 0},
  {"compact", 18, Kind::kCompact, Keys::kInOrder, false, 1, false, false, false, 0},
  {"waitcompact", 19, Kind::kWaitCompact, Keys::kInOrder, false, 1, false, false, false, 0},
  {"fillseqsync", 20, Kind::kPut, Keys::kInOrder, true, 100, true, false, false, 0},
  {"bulkload", 21, Kind::kBulkLoad, Keys::kInOrder, true, 1, false, false, false, 0},
  {"cold", 22, Kind::kCold, Keys::kInOrder, false, 1, false, false, false, 0},
  {"readpareto", 23, Kind::kMix, Keys::kPareto, false, 1, false, false, true, 100},
  {"mixedpareto", 24, Kind::kMix, Keys::kPareto, false, 1, false, false, true, 90},
  {"writepareto", 25, Kind::kMix, Keys::kPareto, false, 1, false, false, true, 0},
  {"ycsba", 26, Kind::kMix, Keys::kZipfian, false, 1, false, false, false, 50},
  {"ycsbb", 27, Kind::kMix, Keys::kZipfian, false, 1, false, false, false, 95},
  {"ycsbc", 28, Kind::kMix, Keys::kZipfian, false, 1, false, false, false, 100},
  {"ycsbd", 29, Kind::kLatest, Keys::kZipfian, false, 1, false, false, false, 95},
  {"ycsbe", 30, Kind::kShortScans, Keys::kZipfian, false, 1, false, false, false, 95},
  {"selftest", 31, Kind::kSelfTest, Keys::kRandom, true, 1, false, false, false, 0},
  {"ycsbf", 32, Kind::kGetAndPut, Keys::kZipfian, false, 1, false, false, false, 50},
  {"readwriterandom", 33, Kind::kMix, Keys::kRandom, false, 1, false, false, false, 50},
  {"queue", 34, Kind::kQueue, Keys::kInOrder, true, 1, false, false, false, 0},
  {"mixgraph", 35, Kind::kMixGraph, Keys::kRandom, false, 1, false, false, false, 0},
  {"replay", 36, Kind::kReplay, Keys::kInOrder, true, 1, false, false, false, 0},
  {"deleterange", 37, Kind::kDeleteRange, Keys::kRandom, false, 100, false, false, false, 0},
  {"fillexpiring", 38, Kind::kPutExpiring, Keys::kRandom, true, 1, false, false, true, 0},
  {"createkeyspaces", 39, Kind::kCreateKeyspaces, Keys::kInOrder, true, 1, false, false, false, 0},
  {"fillkeyspaces", 40, Kind::kPutKeyspaces, Keys::kRandom, false, 1, false, false, false, 0},
  {"readkeyspaces", 41, Kind::kGetKeyspaces, Keys::kRandom, false, 1, false, false, false, 100},
  {"multireadrandom", 42, Kind::kMultiGet, Keys::kRandom, false, 1, false, false, false, 100},
  {"readhit", 43, Kind::kGet, Keys::kPut, false, 1, false, false, false, 100},
};
// clang-format on

inline const Benchmark& FindBenchmark(const std::string& name) {
  for (const Benchmark& benchmark : kBenchmarks) {
    if (name == benchmark.name) return benchmark;
  }
  throw WrongUse("there is no benchmark '" + name + "'; lab/WORKLOADS.md lists them");
}

}  // namespace lab

#endif  // LAB_COMMON_BENCHMARK_H_
