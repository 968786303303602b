// Keys and values.

#ifndef LAB_COMMON_DATA_H_
#define LAB_COMMON_DATA_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "random.h"

namespace lab {

// The buffer of one key: decimal digits with leading zeros, and room for the '.' of a missing key.
class Key {
 public:
  explicit Key(uint64_t size, bool missing = false)
      : digits_(size), bytes_(size + (missing ? 1 : 0), '.') {}

  // Valid until the next call.
  std::string_view Set(uint64_t number) {
    for (size_t i = digits_; i-- > 0;) {
      bytes_[i] = static_cast<char>('0' + number % 10);
      number /= 10;
    }
    return bytes_;
  }

 private:
  size_t digits_;
  std::string bytes_;
};

// The bytes that values are cut from. Pieces of 50 random bytes come twice, so that snappy halves
// them.
class Pool {
 public:
  Pool(uint64_t seed, uint64_t longest) {
    const size_t size = std::max<size_t>(1048576, 16 * longest);
    Random random(seed, 0, 0);
    bytes_.reserve(size + 100);
    while (bytes_.size() < size) {
      std::string half;
      for (int i = 0; i < 50; i++) half.push_back(static_cast<char>(' ' + random.Next() % 95));
      bytes_ += half;
      bytes_ += half;
    }
    bytes_.resize(size);
  }

  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// The values of one thread: one after the other out of the pool, all of one size or each of its
// own.
class Values {
 public:
  Values(const Pool& pool, uint64_t size, uint64_t greatest = 0)
      : pool_(pool.bytes()), size_(size), sizes_(greatest > size ? greatest - size + 1 : 1) {}

  std::string_view Next(Random* random) {
    return Cut(sizes_ == 1 ? size_ : size_ + random->Next() % sizes_);
  }

  // The next value, of this size.
  std::string_view Cut(size_t size) {
    if (position_ + size > pool_.size()) position_ = 0;
    const std::string_view value = pool_.substr(position_, size);
    position_ += size;
    return value;
  }

 private:
  std::string_view pool_;
  size_t size_;
  uint64_t sizes_;
  size_t position_ = 0;
};

}  // namespace lab

#endif  // LAB_COMMON_DATA_H_
