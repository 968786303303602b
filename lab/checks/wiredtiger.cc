// An independent check of the lab's figures for WiredTiger's B-tree, with a log that is written and
// not waited for.

#include <wiredtiger.h>

#include "check.h"

namespace {

void Check(int code) {
  if (code != 0) check::Fail(wiredtiger_strerror(code));
}

WT_ITEM ItemOf(std::string_view text) {
  WT_ITEM item{};
  item.data = text.data();
  item.size = text.size();
  return item;
}

class Store {
 public:
  Store(const std::string& directory, uint64_t cache, uint64_t write_buffer) {
    const std::string config =
        "create,cache_size=" + std::to_string(cache + write_buffer) +
        ",checkpoint=(wait=60),eviction_dirty_target=70,eviction_dirty_trigger=90,log=(enabled=true)"
        ",transaction_sync=(enabled=true,method=none)" + kExtension;
    Check(wiredtiger_open(directory.c_str(), nullptr, config.c_str(), &connection_));
    Check(connection_->open_session(connection_, nullptr, nullptr, &session_));
    Check(session_->create(session_, kTable,
                           "key_format=u,value_format=u,leaf_page_max=32KB,internal_page_max=16KB,"
                           "block_compressor=snappy"));
    Check(session_->open_cursor(session_, kTable, nullptr, "overwrite=true", &cursor_));
  }

  ~Store() { connection_->close(connection_, nullptr); }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void Put(const std::string& key, std::string_view value) {
    const WT_ITEM k = ItemOf(key), v = ItemOf(value);
    cursor_->set_key(cursor_, &k);
    cursor_->set_value(cursor_, &v);
    Check(cursor_->insert(cursor_));
  }

  bool Get(const std::string& key, std::string* value) {
    const WT_ITEM k = ItemOf(key);
    cursor_->set_key(cursor_, &k);
    const bool found = cursor_->search(cursor_) == 0;
    if (found) {
      WT_ITEM v;
      Check(cursor_->get_value(cursor_, &v));
      value->assign(static_cast<const char*>(v.data), v.size);
    }
    Check(cursor_->reset(cursor_));
    return found;
  }

  void Rest() { Check(session_->checkpoint(session_, nullptr)); }

  template <typename Visit>
  void Scan(const Visit& visit) {
    while (cursor_->next(cursor_) == 0) {
      WT_ITEM k, v;
      Check(cursor_->get_key(cursor_, &k));
      Check(cursor_->get_value(cursor_, &v));
      visit(k.size, v.size);
    }
  }

 private:
  static constexpr const char* kTable = "table:check";
#ifdef LAB_BUILTIN_SNAPPY
  static constexpr const char* kExtension = "";
#else
  static constexpr const char* kExtension = ",extensions=[libwiredtiger_snappy.so]";
#endif

  WT_CONNECTION* connection_ = nullptr;
  WT_SESSION* session_ = nullptr;
  WT_CURSOR* cursor_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) { return check::Main<Store>(argc, argv); }
