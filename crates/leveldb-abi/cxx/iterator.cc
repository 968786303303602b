#include "leveldb/iterator.h"

#include "support.h"

namespace leveldb {

Iterator::Iterator() : cleanup_head_{nullptr, nullptr, nullptr, nullptr} {}

// The function registered first runs first, then the others from the newest to the oldest, as in
// LevelDB.
Iterator::~Iterator() {
  if (cleanup_head_.function == nullptr) return;
  cleanup_head_.function(cleanup_head_.arg1, cleanup_head_.arg2);
  for (CleanupNode* node = cleanup_head_.next; node != nullptr;) {
    node->function(node->arg1, node->arg2);
    CleanupNode* next = node->next;
    delete node;
    node = next;
  }
}

void Iterator::RegisterCleanup(CleanupFunction function, void* arg1, void* arg2) {
  if (function == nullptr) return;
  if (cleanup_head_.function == nullptr) {
    cleanup_head_ = {function, arg1, arg2, nullptr};
  } else {
    cleanup_head_.next = new CleanupNode{function, arg1, arg2, cleanup_head_.next};
  }
}

namespace {

// The position is kept here, so that a step crosses into the engine once and looking costs nothing.
class EngineIterator final : public Iterator {
 public:
  explicit EngineIterator(shim_cursor* cursor) : cursor_(cursor), position_{{"", 0}, {"", 0}, 0} {}
  ~EngineIterator() override { shim_cursor_release(cursor_); }

  bool Valid() const override { return position_.valid != 0; }
  void SeekToFirst() override { shim_cursor_first(cursor_, &position_); }
  void SeekToLast() override { shim_cursor_last(cursor_, &position_); }
  void Seek(const Slice& target) override { shim_cursor_seek(cursor_, Bytes(target), &position_); }
  void Next() override { shim_cursor_next(cursor_, &position_); }
  void Prev() override { shim_cursor_prev(cursor_, &position_); }
  Slice key() const override { return AsSlice(position_.key); }
  Slice value() const override { return AsSlice(position_.value); }
  Status status() const override { return Take(shim_cursor_status(cursor_)); }

 private:
  shim_cursor* const cursor_;
  shim_position position_;
};

class EmptyIterator final : public Iterator {
 public:
  explicit EmptyIterator(const Status& status) : status_(status) {}

  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const Slice&) override {}
  void Next() override {}
  void Prev() override {}
  Slice key() const override { return Slice(); }
  Slice value() const override { return Slice(); }
  Status status() const override { return status_; }

 private:
  const Status status_;
};

}  // namespace

Iterator* NewEmptyIterator() { return new EmptyIterator(Status()); }

Iterator* NewErrorIterator(const Status& status) { return new EmptyIterator(status); }

Iterator* NewEngineIterator(shim_cursor* cursor) { return new EngineIterator(cursor); }

}  // namespace leveldb
