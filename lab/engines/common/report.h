// The lines that a benchmark prints.

#ifndef LAB_COMMON_REPORT_H_
#define LAB_COMMON_REPORT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "engine.h"
#include "histogram.h"
#include "json.h"
#include "resources.h"

namespace lab {

struct Result {
  std::string benchmark;
  std::string engine;
  uint64_t threads = 1;
  uint64_t operations = 0;
  uint64_t bytes = 0;
  double seconds = 0;
  Histogram latencies;
  double cpu_seconds = 0;
  uint64_t bytes_written = 0;
  uint64_t bytes_read = 0;
  std::optional<DeviceRequests> device;
  uint64_t disk_bytes = 0;
  uint64_t peak_memory_bytes = 0;
  // When the benchmark began; of an LSM tree that says so.
  std::vector<Level> levels;
  std::optional<uint64_t> found;
  std::optional<double> writer_ops_per_sec;
  bool truncated = false;
  std::string digest;

  double OperationsPerSecond() const {
    return seconds > 0 ? static_cast<double>(operations) / seconds : 0;
  }
  double MicrosPerOperation() const {
    return 1e6 * seconds * static_cast<double>(threads) /
           static_cast<double>(std::max<uint64_t>(operations, 1));
  }
  double MegabytesPerSecond() const {
    return seconds > 0 ? static_cast<double>(bytes) / 1048576 / seconds : 0;
  }

  std::string JsonLine() const {
    Json line;
    line.Text("benchmark", benchmark).Text("engine", engine).Whole("ops", operations);
    line.Number("seconds", seconds, 6).Number("micros_per_op", MicrosPerOperation(), 4);
    line.Number("ops_per_sec", OperationsPerSecond(), 1)
        .Number("mb_per_sec", MegabytesPerSecond(), 2);
    line.Number("mean_us", latencies.MeanMicros(), 3);
    for (const auto& [name, quantile] : kQuantiles)
      line.Number(name, latencies.MicrosAt(quantile), 3);
    line.Number("max_us", latencies.MaxMicros(), 3);
    line.Number("cpu_seconds", cpu_seconds, 3).Whole("bytes_written", bytes_written).Whole("bytes_read", bytes_read);
    if (device) {
      line.Whole("device_reads", device->reads).Whole("device_writes", device->writes);
      line.Whole("device_bytes_written", device->bytes_written);
    }
    line.Whole("disk_bytes", disk_bytes).Whole("peak_memory_bytes", peak_memory_bytes);
    if (const std::string shape = LevelList(); !shape.empty()) line.Raw("levels", shape);
    if (found) line.Whole("found", *found);
    if (writer_ops_per_sec) line.Number("writer_ops_per_sec", *writer_ops_per_sec, 1);
    if (truncated) line.Raw("truncated", "true");
    if (!digest.empty()) line.Text("digest", digest);
    return line.Line();
  }

  // Files and bytes of each level down to the last that holds a file.
  std::string LevelList() const {
    size_t count = levels.size();
    while (count > 0 && levels[count - 1].files == 0) count--;
    std::string list;
    for (size_t i = 0; i < count; i++) {
      list += (i == 0 ? "[[" : ",[") + std::to_string(levels[i].files) + "," +
              std::to_string(levels[i].bytes) + "]";
    }
    return list.empty() ? list : list + "]";
  }

  std::string TextLine() const {
    char start[160];
    std::snprintf(start, sizeof start, "%-16s : %11.3f micros/op; %10.0f ops/s; %8.1f MB/s",
                  benchmark.c_str(), MicrosPerOperation(), OperationsPerSecond(),
                  MegabytesPerSecond());
    std::string line = start;
    if (found) line += " (" + std::to_string(*found) + " found)";
    if (writer_ops_per_sec)
      line += " (writer " + std::to_string(std::lround(*writer_ops_per_sec)) + " ops/s)";
    if (truncated) line += " (truncated after " + std::to_string(operations) + ")";
    if (!digest.empty()) line += " (digest " + digest + ")";
    return line;
  }

 private:
  struct Quantile {
    const char* name;
    double value;
  };
  static constexpr Quantile kQuantiles[] = {
      {"p50_us", 0.5},  {"p75_us", 0.75},   {"p90_us", 0.9},     {"p95_us", 0.95},
      {"p99_us", 0.99}, {"p999_us", 0.999}, {"p9999_us", 0.9999}};
};

// One interval of a benchmark that is still running.
inline std::string SeriesLine(const std::string& benchmark, double second, uint64_t operations,
                              const Histogram& latencies) {
  return Json()
      .Text("series", benchmark)
      .Number("second", second, 3)
      .Whole("ops", operations)
      .Number("mean_us", latencies.MeanMicros(), 3)
      .Number("p50_us", latencies.MicrosAt(0.5), 3)
      .Number("p95_us", latencies.MicrosAt(0.95), 3)
      .Number("p99_us", latencies.MicrosAt(0.99), 3)
      .Number("p999_us", latencies.MicrosAt(0.999), 3)
      .Number("max_us", latencies.MaxMicros(), 3)
      .Line();
}

// Written at once and whole, independent of the reader and of the end of the process.
inline void PrintLine(const std::string& line) {
  std::fwrite((line + "\n").data(), 1, line.size() + 1, stdout);
  std::fflush(stdout);
}

}  // namespace lab

#endif  // LAB_COMMON_REPORT_H_
