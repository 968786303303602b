// An independent check of the lab's figures for Berkeley DB: a B-tree in a transactional
// environment whose log is written and not waited for.

#include <atomic>
#include <thread>

#include <db.h>

#include "check.h"

namespace {

void Check(int code) {
  if (code != 0) check::Fail(db_strerror(code));
}

DBT Of(std::string_view text) {
  DBT dbt{};
  dbt.data = const_cast<char*>(text.data());
  dbt.size = static_cast<u_int32_t>(text.size());
  return dbt;
}

class Store {
 public:
  Store(const std::string& directory, uint64_t cache, uint64_t write_buffer) {
    Check(db_env_create(&env_, 0));
    Check(env_->set_cachesize(env_, 0, static_cast<u_int32_t>(cache + write_buffer), 1));
    Check(env_->log_set_config(env_, DB_LOG_AUTO_REMOVE, 1));
    Check(env_->set_flags(env_, DB_TXN_WRITE_NOSYNC, 1));
    const u_int32_t flags = DB_CREATE | DB_RECOVER | DB_PRIVATE | DB_THREAD | DB_INIT_MPOOL |
                            DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK;
    Check(env_->open(env_, directory.c_str(), flags, 0644));
    Check(db_create(&db_, env_, 0));
    Check(db_->open(db_, nullptr, "check.db", nullptr, DB_BTREE,
                    DB_CREATE | DB_AUTO_COMMIT | DB_THREAD, 0644));
    checkpoints_ = std::thread([this] {
      while (!ending_) {
        env_->txn_checkpoint(env_, 64 * 1024, 0, 0);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      }
    });
  }

  ~Store() {
    ending_ = true;
    checkpoints_.join();
    db_->close(db_, 0);
    env_->close(env_, 0);
  }

  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void Put(const std::string& key, std::string_view value) {
    DBT k = Of(key), v = Of(value);
    Check(db_->put(db_, nullptr, &k, &v, 0));
  }

  bool Get(const std::string& key, std::string* value) {
    DBT k = Of(key), v{};
    v.flags = DB_DBT_USERMEM;
    v.data = buffer_;
    v.ulen = sizeof buffer_;
    if (db_->get(db_, nullptr, &k, &v, 0) != 0) return false;
    value->assign(buffer_, v.size);
    return true;
  }

  void Rest() { Check(env_->txn_checkpoint(env_, 0, 0, DB_FORCE)); }

  template <typename Visit>
  void Scan(const Visit& visit) {
    DBC* cursor;
    Check(db_->cursor(db_, nullptr, &cursor, 0));
    DBT k{}, v{};
    char key[64];
    k.flags = v.flags = DB_DBT_USERMEM;
    k.data = key;
    k.ulen = sizeof key;
    v.data = buffer_;
    v.ulen = sizeof buffer_;
    while (cursor->get(cursor, &k, &v, DB_NEXT) == 0) visit(k.size, v.size);
    cursor->close(cursor);
  }

 private:
  DB_ENV* env_ = nullptr;
  DB* db_ = nullptr;
  char buffer_[4096];
  std::atomic<bool> ending_{false};
  std::thread checkpoints_;
};

}  // namespace

int main(int argc, char** argv) { return check::Main<Store>(argc, argv); }
