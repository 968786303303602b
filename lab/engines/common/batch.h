// Changes that are kept until they are applied together: for engines whose transaction may have to
// be tried again.

#ifndef LAB_COMMON_BATCH_H_
#define LAB_COMMON_BATCH_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lab {

class Batch {
 public:
  void Put(std::string_view key, std::string_view value) { Add(true, key, value); }
  void Delete(std::string_view key) { Add(false, key, {}); }

  void Clear() {
    changes_.clear();
    bytes_.clear();
  }

  // Calls apply(is_put, key, value) in the order of the changes.
  template <typename Apply>
  void ForEach(const Apply& apply) const {
    const std::string_view bytes = bytes_;
    for (const Change& change : changes_) {
      apply(change.is_put, bytes.substr(change.at, change.key_size),
            bytes.substr(change.at + change.key_size, change.value_size));
    }
  }

 private:
  struct Change {
    size_t at;
    size_t key_size;
    size_t value_size;
    bool is_put;
  };

  void Add(bool is_put, std::string_view key, std::string_view value) {
    changes_.push_back({bytes_.size(), key.size(), value.size(), is_put});
    bytes_ += key;
    bytes_ += value;
  }

  std::vector<Change> changes_;
  std::string bytes_;
};

}  // namespace lab

#endif  // LAB_COMMON_BATCH_H_
