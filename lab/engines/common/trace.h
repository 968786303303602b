// Recorded traces; lab/WORKLOADS.md specifies their format.

#ifndef LAB_COMMON_TRACE_H_
#define LAB_COMMON_TRACE_H_

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "failure.h"

namespace lab {

class Trace {
 public:
  enum Kind : uint8_t { kEntry = 1, kPut, kDelete, kBatch, kGet, kScan };
  enum Start : uint8_t { kFirst, kLast, kFrom, kBackFrom };

  // One change.
  struct Operation {
    bool put;
    std::string_view key;
    uint64_t size;
  };

  struct Record {
    Kind kind;
    // Of a batch its changes; else one operation, but for an entry that was there.
    uint64_t operations;
    // Of an entry, a put, a deletion and a get, and where a scan begins, if at a key.
    Operation operation;
    Start start;
    uint64_t steps;
    // Where the changes of a batch are.
    size_t changes;
  };

  // Reads a trace and checks every record. What the end of the file cuts off is dropped. Throws
  // WrongUse.
  explicit Trace(const std::string& path) : path_(path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    if (!file.is_open() || file.bad()) throw WrongUse("cannot read " + path);
    if (bytes_.compare(0, kMagic.size(), kMagic) != 0) {
      throw WrongUse(path + ": not a trace of version 1");
    }
    size_t at = kMagic.size();
    try {
      for (size_t next = at; next < bytes_.size(); at = next) {
        const Record record = Read(&next);
        largest_value_ = std::max(largest_value_, record.operation.size);
      }
    } catch (const CutOff&) {
      bytes_.resize(at);
    }
  }

  static constexpr std::string_view kMagic = "terrace trace 1\n";

  uint64_t largest_value() const { return largest_value_; }

  // Where the first record begins, and where the last one ends.
  size_t begin() const { return kMagic.size(); }
  size_t end() const { return bytes_.size(); }

  // The record at `*at`, which becomes the place of the next one.
  Record Read(size_t* at) const {
    Record record{};
    const uint8_t kind = Byte(at) & 0x7f;
    Number(at);
    record.kind = static_cast<Kind>(kind);
    record.operations = 1;
    switch (kind) {
      case kEntry:
        record.operations = 0;
        record.operation = Put(at);
        break;
      case kPut:
        record.operation = Put(at);
        break;
      case kDelete:
      case kGet:
        record.operation.key = Key(at);
        break;
      case kBatch:
        record.operations = Number(at);
        record.changes = *at;
        for (uint64_t left = record.operations, bytes = 0; left > 0; left--) {
          const uint64_t size = Change(at).size;
          bytes += size;
          if (bytes > kLargestBatch) Broken(*at, "the values of a batch have more than 1 GiB");
          record.operation.size = std::max(record.operation.size, size);
        }
        break;
      case kScan: {
        const uint8_t start = Byte(at);
        if (start > kBackFrom) Broken(*at, "a scan cannot begin like this");
        record.start = static_cast<Start>(start);
        if (start >= kFrom) record.operation.key = Key(at);
        record.steps = Number(at);
        break;
      }
      default:
        Broken(*at, "there is no such kind of record");
    }
    return record;
  }

  // A change of a batch at `*at`, which becomes the place of the next one.
  Operation Change(size_t* at) const {
    const uint8_t kind = Byte(at);
    if (kind == kPut) return Put(at);
    if (kind != kDelete) Broken(*at, "a batch has puts and deletions only");
    return {false, Key(at), 0};
  }

 private:
  struct CutOff {};

  // No value may be larger, so that a broken trace makes nobody take all memory.
  static constexpr uint64_t kLargestValue = 64 << 20;
  // Nor may the values of a batch, which engines collect.
  static constexpr uint64_t kLargestBatch = 1 << 30;

  [[noreturn]] void Broken(size_t at, const char* what) const {
    throw WrongUse(path_ + ": broken at byte " + std::to_string(at) + ": " + what);
  }

  Operation Put(size_t* at) const {
    const std::string_view key = Key(at);
    const uint64_t size = Number(at);
    if (size > kLargestValue) Broken(*at, "a value has more than 64 MiB");
    return {true, key, size};
  }

  std::string_view Key(size_t* at) const {
    const uint64_t length = Number(at);
    if (length > bytes_.size() - *at) throw CutOff();
    const std::string_view key(bytes_.data() + *at, length);
    *at += length;
    return key;
  }

  uint64_t Number(size_t* at) const {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = Byte(at);
      number |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return number;
    }
    Broken(*at, "a number has more than 64 bits");
  }

  uint8_t Byte(size_t* at) const {
    if (*at >= bytes_.size()) throw CutOff();
    return static_cast<uint8_t>(bytes_[(*at)++]);
  }

  const std::string path_;
  std::string bytes_;
  uint64_t largest_value_ = 0;
};

}  // namespace lab

#endif  // LAB_COMMON_TRACE_H_
