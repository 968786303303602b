// An independent check of the lab's figures for LMDB: a transaction for each operation, as in the
// db_bench that its authors made of LevelDB's.

#include <lmdb.h>

#include "check.h"

namespace {

void Check(int code) {
  if (code != MDB_SUCCESS) check::Fail(mdb_strerror(code));
}

MDB_val ValOf(std::string_view text) {
  return MDB_val{text.size(), const_cast<char*>(text.data())};
}

class Store {
 public:
  Store(const std::string& directory, uint64_t, uint64_t) {
    Check(mdb_env_create(&env_));
    Check(mdb_env_set_mapsize(env_, size_t{16} << 30));
    Check(mdb_env_open(env_, directory.c_str(), MDB_NOSYNC, 0644));
    MDB_txn* txn;
    Check(mdb_txn_begin(env_, nullptr, 0, &txn));
    Check(mdb_dbi_open(txn, nullptr, MDB_CREATE, &dbi_));
    Check(mdb_txn_commit(txn));
    Check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reading_));
    mdb_txn_reset(reading_);
  }

  ~Store() {
    mdb_txn_abort(reading_);
    mdb_env_close(env_);
  }

  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void Put(const std::string& key, std::string_view value) {
    MDB_txn* txn;
    Check(mdb_txn_begin(env_, nullptr, 0, &txn));
    MDB_val k = ValOf(key), v = ValOf(value);
    Check(mdb_put(txn, dbi_, &k, &v, 0));
    Check(mdb_txn_commit(txn));
  }

  bool Get(const std::string& key, std::string* value) {
    Check(mdb_txn_renew(reading_));
    MDB_val k = ValOf(key), v;
    const bool found = mdb_get(reading_, dbi_, &k, &v) == MDB_SUCCESS;
    if (found) value->assign(static_cast<const char*>(v.mv_data), v.mv_size);
    mdb_txn_reset(reading_);
    return found;
  }

  void Rest() { Check(mdb_env_sync(env_, 1)); }

  template <typename Visit>
  void Scan(const Visit& visit) {
    Check(mdb_txn_renew(reading_));
    MDB_cursor* cursor;
    Check(mdb_cursor_open(reading_, dbi_, &cursor));
    MDB_val k, v;
    while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == MDB_SUCCESS) visit(k.mv_size, v.mv_size);
    mdb_cursor_close(cursor);
    mdb_txn_reset(reading_);
  }

 private:
  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
  MDB_txn* reading_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) { return check::Main<Store>(argc, argv); }
