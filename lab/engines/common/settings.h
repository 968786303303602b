// The command line of an engine program.

#ifndef LAB_COMMON_SETTINGS_H_
#define LAB_COMMON_SETTINGS_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "failure.h"

namespace lab {

struct Settings {
  std::vector<std::string> benchmarks = {"fillseq", "readrandom", "readseq"};
  std::string db;
  uint64_t num = 1000000;
  uint64_t reads = 0;
  uint64_t key_size = 16;
  uint64_t value_size = 100;
  uint64_t value_size_max = 0;
  uint64_t threads = 1;
  uint64_t batch = 1000;
  uint64_t write_rate = 0;
  // Of the benchmarks that are about many.
  uint64_t keyspaces = 1000;
  // Operations a second of an open loop; 0 for a closed one.
  uint64_t rate = 0;
  uint64_t seed = 301;
  // The file that replay replays.
  std::string trace;
  double duration = 10;
  double interval = 0;
  double time_limit = 0;
  bool json = false;
  bool describe = false;
  bool version = false;

  // An engine's settings; 0 and the empty string stand for its default.
  uint64_t cache_size = 0;
  uint64_t write_buffer_size = 0;
  uint64_t block_size = 0;
  uint64_t max_open_files = 0;
  uint64_t bloom_bits = 0;
  bool compression = true;
  std::string variant;

  // Bits of filter for a key, for engines that have none unless they are asked for: their variant
  // "filter" has ten.
  uint64_t FilterBits() const { return bloom_bits == 0 && variant == "filter" ? 10 : bloom_bits; }

  // The memory of an engine that has one pool for everything; 0 is its default.
  uint64_t memory() const { return cache_size + write_buffer_size; }
};

namespace internal {

inline uint64_t ParseWhole(const std::string& name, const std::string& value) {
  if (value.empty() || value.size() > 18 ||
      value.find_first_not_of("0123456789") != std::string::npos) {
    throw WrongUse("--" + name + " wants a whole number, not '" + value + "'");
  }
  return std::strtoull(value.c_str(), nullptr, 10);
}

inline double ParseSeconds(const std::string& name, const std::string& value) {
  char* end = nullptr;
  const double seconds = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !(seconds >= 0 && seconds < 1e8)) {
    throw WrongUse("--" + name + " wants seconds, not '" + value + "'");
  }
  return seconds;
}

inline std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

inline void Limit(const std::string& name, uint64_t value, uint64_t least, uint64_t most) {
  if (value < least || value > most) {
    throw WrongUse("--" + name + " must be from " + std::to_string(least) + " to " +
                   std::to_string(most));
  }
}

inline void Validate(Settings* settings) {
  Limit("num", settings->num, 1, 1000000000);
  Limit("reads", settings->reads, 0, 1000000000000);
  Limit("key_size", settings->key_size, 1, 1024);
  Limit("value_size", settings->value_size, 1, 16 << 20);
  Limit("value_size_max", settings->value_size_max, 0, 16 << 20);
  Limit("threads", settings->threads, 1, 256);
  Limit("batch", settings->batch, 1, 1000000);
  Limit("keyspaces", settings->keyspaces, 1, 1000000);
  Limit("write_rate", settings->write_rate, 0, 1000000000);
  Limit("rate", settings->rate, 0, 1000000000);
  Limit("bloom_bits", settings->bloom_bits, 0, 64);
  Limit("max_open_files", settings->max_open_files, 0, 1000000);
  // Twice num: ycsbd and ycsbe put keys above it.
  if (settings->key_size < std::to_string(2 * settings->num).size()) {
    throw WrongUse("--key_size=" + std::to_string(settings->key_size) +
                   " is too small for the keys of --num=" + std::to_string(settings->num));
  }
  if (settings->reads == 0) settings->reads = settings->num;
  if (settings->db.empty() && !settings->describe && !settings->version)
    throw WrongUse("--db=DIR is missing");
}

}  // namespace internal

// Throws WrongUse.
inline Settings ParseSettings(int argc, char** argv) {
  Settings settings;
  const std::map<std::string, uint64_t*> numbers = {
      {"num", &settings.num},
      {"reads", &settings.reads},
      {"key_size", &settings.key_size},
      {"value_size", &settings.value_size},
      {"value_size_max", &settings.value_size_max},
      {"threads", &settings.threads},
      {"batch", &settings.batch},
      {"write_rate", &settings.write_rate},
      {"keyspaces", &settings.keyspaces},
      {"rate", &settings.rate},
      {"seed", &settings.seed},
      {"cache_size", &settings.cache_size},
      {"write_buffer_size", &settings.write_buffer_size},
      {"block_size", &settings.block_size},
      {"max_open_files", &settings.max_open_files},
      {"bloom_bits", &settings.bloom_bits},
  };
  const std::map<std::string, double*> times = {{"duration", &settings.duration},
                                                {"interval", &settings.interval},
                                                {"time_limit", &settings.time_limit}};
  const std::map<std::string, bool*> switches = {{"--json", &settings.json},
                                                 {"--describe", &settings.describe},
                                                 {"--version", &settings.version}};
  for (int i = 1; i < argc; i++) {
    const std::string argument = argv[i];
    if (const auto found = switches.find(argument); found != switches.end()) {
      *found->second = true;
      continue;
    }
    const size_t equals = argument.find('=');
    if (argument.compare(0, 2, "--") != 0 || equals == std::string::npos) {
      throw WrongUse("cannot read '" + argument + "'; flags are --name=value");
    }
    const std::string name = argument.substr(2, equals - 2);
    const std::string value = argument.substr(equals + 1);
    if (const auto number = numbers.find(name); number != numbers.end()) {
      *number->second = internal::ParseWhole(name, value);
    } else if (const auto time = times.find(name); time != times.end()) {
      *time->second = internal::ParseSeconds(name, value);
    } else if (name == "benchmarks") {
      settings.benchmarks = internal::Split(value);
    } else if (name == "compression" && (value == "snappy" || value == "none")) {
      settings.compression = value == "snappy";
    } else if (name == "variant") {
      settings.variant = value;
    } else if (name == "trace") {
      settings.trace = value;
    } else if (name == "db") {
      settings.db = value;
    } else {
      throw WrongUse("cannot read '" + argument + "'; lab/WORKLOADS.md lists the flags");
    }
  }
  internal::Validate(&settings);
  return settings;
}

}  // namespace lab

#endif  // LAB_COMMON_SETTINGS_H_
