// A cursor over an iterator of LevelDB's shape, which RocksDB has as well.

#ifndef LAB_COMMON_ITERATOR_CURSOR_H_
#define LAB_COMMON_ITERATOR_CURSOR_H_

#include <memory>
#include <string_view>

#include "failure.h"

namespace lab {

template <typename Iterator>
class IteratorCursor {
 public:
  // Takes the iterator.
  explicit IteratorCursor(Iterator* iterator) : iterator_(iterator) {}

  bool First() {
    iterator_->SeekToFirst();
    return Valid();
  }

  bool Last() {
    iterator_->SeekToLast();
    return Valid();
  }

  bool Seek(std::string_view key) {
    using Slice = decltype(iterator_->key());
    iterator_->Seek(Slice(key.data(), key.size()));
    return Valid();
  }

  bool Next() {
    iterator_->Next();
    return Valid();
  }

  bool Prev() {
    iterator_->Prev();
    return Valid();
  }

  std::string_view key() const { return ViewOf(iterator_->key()); }
  std::string_view value() const { return ViewOf(iterator_->value()); }

 private:
  template <typename Slice>
  static std::string_view ViewOf(const Slice& slice) {
    return std::string_view(slice.data(), slice.size());
  }

  bool Valid() {
    if (iterator_->Valid()) return true;
    const auto status = iterator_->status();
    if (!status.ok()) throw Failure(status.ToString());
    return false;
  }

  std::unique_ptr<Iterator> iterator_;
};

}  // namespace lab

#endif  // LAB_COMMON_ITERATOR_CURSOR_H_
