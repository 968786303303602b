#include "leveldb/comparator.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>

#include "leveldb/slice.h"
#include "support.h"

namespace leveldb {

Comparator::~Comparator() = default;

namespace {

class BytewiseComparatorImpl final : public Comparator {
 public:
  const char* Name() const override { return "leveldb.BytewiseComparator"; }

  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }

  void FindShortestSeparator(std::string* start, const Slice& limit) const override {
    const size_t both = std::min(start->size(), limit.size());
    size_t at = 0;
    while (at < both && (*start)[at] == limit[at]) at++;
    if (at == both) return;
    const uint8_t byte = static_cast<uint8_t>((*start)[at]);
    if (byte < 0xff && byte + 1 < static_cast<uint8_t>(limit[at])) {
      (*start)[at] = static_cast<char>(byte + 1);
      start->resize(at + 1);
    }
  }

  void FindShortSuccessor(std::string* key) const override {
    for (size_t at = 0; at < key->size(); at++) {
      const uint8_t byte = static_cast<uint8_t>((*key)[at]);
      if (byte != 0xff) {
        (*key)[at] = static_cast<char>(byte + 1);
        key->resize(at + 1);
        return;
      }
    }
  }
};

const Comparator* Object(const void* object) { return static_cast<const Comparator*>(object); }

int Compare(const void* object, shim_bytes a, shim_bytes b) noexcept {
  return Object(object)->Compare(AsSlice(a), AsSlice(b));
}

void ShortestSeparator(const void* object, shim_bytes start, shim_bytes limit, void* target,
                       shim_put put) noexcept {
  std::string key = AsString(start);
  Object(object)->FindShortestSeparator(&key, AsSlice(limit));
  put(target, key.data(), key.size());
}

void ShortSuccessor(const void* object, shim_bytes key, void* target, shim_put put) noexcept {
  std::string successor = AsString(key);
  Object(object)->FindShortSuccessor(&successor);
  put(target, successor.data(), successor.size());
}

}  // namespace

const Comparator* BytewiseComparator() {
  // Never destroyed: databases may be in use until the process ends.
  static const Comparator* const kBytewise = new BytewiseComparatorImpl;
  return kBytewise;
}

shim_comparator EngineComparator(const Comparator* comparator) {
  if (comparator == nullptr || comparator == BytewiseComparator()) return {};
  return {comparator, comparator->Name(), Compare, ShortestSeparator, ShortSuccessor};
}

}  // namespace leveldb
