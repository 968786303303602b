// An independent check of the lab's figures for SQLite, over its C interface.

#include <sqlite3.h>

#include "check.h"

namespace {

class Store {
 public:
  Store(const std::string& directory, uint64_t cache, uint64_t write_buffer) {
    // Without the mutex that each call would take, five of them for a step of a scan: the lab asks
    // for this, too.
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    const std::string path = directory + "/check.sqlite";
    Check(sqlite3_open_v2(path.c_str(), &db_, flags, nullptr) == SQLITE_OK);
    Run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; "
        "PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 1024; PRAGMA mmap_size = 2147418112; "
        "PRAGMA secure_delete = OFF");
    Run("PRAGMA cache_size = -" + std::to_string((cache + write_buffer) / 1024));
    Run("CREATE TABLE kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID");
    put_ = Prepare("REPLACE INTO kv VALUES (?, ?)");
    get_ = Prepare("SELECT v FROM kv WHERE k = ?");
  }

  ~Store() {
    sqlite3_finalize(put_);
    sqlite3_finalize(get_);
    sqlite3_close(db_);
  }

  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void Put(const std::string& key, std::string_view value) {
    Bind(put_, 1, key);
    Bind(put_, 2, value);
    Check(sqlite3_step(put_) == SQLITE_DONE);
    sqlite3_reset(put_);
  }

  bool Get(const std::string& key, std::string* value) {
    Bind(get_, 1, key);
    const bool found = sqlite3_step(get_) == SQLITE_ROW;
    if (found) {
      value->assign(static_cast<const char*>(sqlite3_column_blob(get_, 0)),
                    static_cast<size_t>(sqlite3_column_bytes(get_, 0)));
    }
    sqlite3_reset(get_);
    return found;
  }

  void Rest() { Run("PRAGMA wal_checkpoint(RESTART)"); }

  template <typename Visit>
  void Scan(const Visit& visit) {
    sqlite3_stmt* scan = Prepare("SELECT k, v FROM kv ORDER BY k");
    while (sqlite3_step(scan) == SQLITE_ROW) {
      // A reader wants the bytes, not only how many they are.
      sqlite3_column_blob(scan, 0);
      sqlite3_column_blob(scan, 1);
      visit(static_cast<size_t>(sqlite3_column_bytes(scan, 0)),
            static_cast<size_t>(sqlite3_column_bytes(scan, 1)));
    }
    sqlite3_finalize(scan);
  }

 private:
  void Check(bool right) const {
    if (!right) check::Fail(sqlite3_errmsg(db_));
  }

  void Run(const std::string& text) {
    Check(sqlite3_exec(db_, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  }

  sqlite3_stmt* Prepare(const char* text) {
    sqlite3_stmt* statement = nullptr;
    Check(sqlite3_prepare_v2(db_, text, -1, &statement, nullptr) == SQLITE_OK);
    return statement;
  }

  void Bind(sqlite3_stmt* statement, int at, std::string_view bytes) const {
    Check(sqlite3_bind_blob(statement, at, bytes.data(), static_cast<int>(bytes.size()),
                            SQLITE_STATIC) == SQLITE_OK);
  }

  sqlite3* db_ = nullptr;
  sqlite3_stmt* put_ = nullptr;
  sqlite3_stmt* get_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) { return check::Main<Store>(argc, argv); }
