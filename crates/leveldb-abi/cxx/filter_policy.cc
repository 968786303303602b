#include "leveldb/filter_policy.h"

#include <vector>

#include "leveldb/slice.h"
#include "support.h"

namespace leveldb {

FilterPolicy::~FilterPolicy() = default;

namespace {

class BloomFilterPolicy final : public FilterPolicy {
 public:
  explicit BloomFilterPolicy(int bits_per_key) : bits_(bits_per_key < 0 ? 0 : bits_per_key) {}

  const char* Name() const override { return "leveldb.BuiltinBloomFilter2"; }

  void CreateFilter(const Slice* keys, int n, std::string* dst) const override {
    std::vector<shim_bytes> parts(n < 0 ? 0 : n);
    for (size_t at = 0; at < parts.size(); at++) parts[at] = Bytes(keys[at]);
    shim_bloom_create(bits_, parts.data(), parts.size(), dst, AppendTo);
  }

  bool KeyMayMatch(const Slice& key, const Slice& filter) const override {
    return shim_bloom_may_match(bits_, Bytes(key), Bytes(filter)) != 0;
  }

  int bits() const { return bits_; }

 private:
  const int bits_;
};

const FilterPolicy* Object(const void* object) { return static_cast<const FilterPolicy*>(object); }

void Create(const void* object, const shim_bytes* keys, size_t count, void* target,
            shim_put put) noexcept {
  std::vector<Slice> slices(count);
  for (size_t at = 0; at < count; at++) slices[at] = AsSlice(keys[at]);
  std::string filter;
  Object(object)->CreateFilter(slices.data(), static_cast<int>(count), &filter);
  put(target, filter.data(), filter.size());
}

uint8_t MayMatch(const void* object, shim_bytes key, shim_bytes filter) noexcept {
  return Object(object)->KeyMayMatch(AsSlice(key), AsSlice(filter));
}

}  // namespace

const FilterPolicy* NewBloomFilterPolicy(int bits_per_key) {
  return new BloomFilterPolicy(bits_per_key);
}

shim_filter EngineFilter(const FilterPolicy* policy) {
  if (policy == nullptr) return {nullptr, nullptr, -1, nullptr, nullptr};
  static const BloomFilterPolicy kOurs(0);
  if (TableOf(policy) == TableOf(&kOurs)) {
    return {nullptr, nullptr, static_cast<const BloomFilterPolicy*>(policy)->bits(), nullptr,
            nullptr};
  }
  return {policy, policy->Name(), -1, Create, MayMatch};
}

}  // namespace leveldb
