// An independent check of the lab's figures for InnoDB, in MariaDB's embedded server, by prepared
// statements of its own interface in C.

#include <cstring>
#include <vector>

#include <mysql.h>

#include "check.h"

namespace {

// A prepared statement whose parameters and columns are bytes.
class Statement {
 public:
  Statement(MYSQL* connection, const std::string& text, size_t parameters, size_t columns)
      : handle_(mysql_stmt_init(connection)) {
    Check(mysql_stmt_prepare(handle_, text.data(), text.size()) == 0);
    Bind(in_, given_, given_sizes_, parameters);
    Bind(out_, columns_, sizes_, columns);
    if (parameters > 0) Check(mysql_stmt_bind_param(handle_, in_) == 0);
    if (columns > 0) Check(mysql_stmt_bind_result(handle_, out_) == 0);
  }

  ~Statement() { mysql_stmt_close(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void Run(std::string_view first, std::string_view second = {}) {
    Give(0, first);
    Give(1, second);
    Check(mysql_stmt_execute(handle_) == 0);
  }

  bool Next() { return mysql_stmt_fetch(handle_) == 0; }
  std::string_view Column(size_t at) const { return std::string_view(columns_[at], sizes_[at]); }
  void End() { mysql_stmt_free_result(handle_); }

 private:
  static constexpr size_t kSize = 2000;

  static void Bind(MYSQL_BIND* binds, char (*bytes)[kSize], unsigned long* sizes, size_t count) {
    std::memset(binds, 0, 2 * sizeof *binds);
    for (size_t i = 0; i < count; i++) {
      binds[i].buffer_type = MYSQL_TYPE_BLOB;
      binds[i].buffer = bytes[i];
      binds[i].buffer_length = kSize;
      binds[i].length = &sizes[i];
    }
  }

  void Give(size_t at, std::string_view bytes) {
    if (bytes.size() > kSize) check::Fail("a parameter is too long");
    if (!bytes.empty()) std::memcpy(given_[at], bytes.data(), bytes.size());
    given_sizes_[at] = bytes.size();
  }

  void Check(bool right) {
    if (!right) check::Fail(mysql_stmt_error(handle_));
  }

  MYSQL_STMT* const handle_;
  MYSQL_BIND in_[2];
  MYSQL_BIND out_[2];
  char given_[2][kSize];
  char columns_[2][kSize];
  unsigned long given_sizes_[2] = {0, 0};
  unsigned long sizes_[2] = {0, 0};
};

class Store {
 public:
  Store(const std::string& directory, uint64_t cache, uint64_t write_buffer) {
    std::vector<std::string> words = {"check",
                                      "--no-defaults",
                                      "--datadir=" + directory,
                                      "--tmpdir=" + directory,
                                      "--innodb-flush-method=fsync",
                                      "--innodb-io-capacity=2000",
                                      "--innodb-buffer-pool-dump-at-shutdown=0",
                                      "--innodb-buffer-pool-load-at-startup=0",
                                      "--default-storage-engine=InnoDB",
                                      "--innodb-flush-log-at-trx-commit=2",
                                      "--innodb-buffer-pool-size=" +
                                          std::to_string(cache + write_buffer)};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (mysql_server_init(static_cast<int>(words.size()), arguments.data(), nullptr) != 0)
      check::Fail("the embedded server does not start");
    connection_ = mysql_init(nullptr);
    if (mysql_real_connect(connection_, nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0) ==
        nullptr)
      check::Fail(mysql_error(connection_));
    Run("CREATE DATABASE check_db");
    Run("CREATE TABLE check_db.kv (k VARBINARY(1100) NOT NULL PRIMARY KEY, v LONGBLOB NOT NULL)");
    put_ = std::make_unique<Statement>(
        connection_,
        "INSERT INTO check_db.kv (k, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE v = VALUES(v)", 2, 0);
    get_ = std::make_unique<Statement>(connection_, "SELECT v FROM check_db.kv WHERE k = ?", 1, 1);
  }

  ~Store() {
    put_.reset();
    get_.reset();
    mysql_close(connection_);
    mysql_server_end();
  }

  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void Put(const std::string& key, std::string_view value) { put_->Run(key, value); }

  bool Get(const std::string& key, std::string* value) {
    get_->Run(key);
    const bool found = get_->Next();
    if (found) *value = get_->Column(0);
    get_->End();
    return found;
  }

  void Rest() {
    Run("FLUSH TABLES check_db.kv FOR EXPORT");
    Run("UNLOCK TABLES");
  }

  // A thousand rows at a time: the embedded server keeps a whole result in memory.
  template <typename Visit>
  void Scan(const Visit& visit) {
    Statement page(connection_,
                   "SELECT k, v FROM check_db.kv WHERE k > ? ORDER BY k LIMIT 1000", 1, 2);
    std::string last;
    for (bool more = true; more;) {
      more = false;
      page.Run(last);
      while (page.Next()) {
        more = true;
        last = page.Column(0);
        visit(last.size(), page.Column(1).size());
      }
      page.End();
    }
  }

 private:
  void Run(const char* text) {
    if (mysql_query(connection_, text) != 0) check::Fail(mysql_error(connection_));
    if (MYSQL_RES* result = mysql_store_result(connection_)) mysql_free_result(result);
  }

  MYSQL* connection_ = nullptr;
  std::unique_ptr<Statement> put_;
  std::unique_ptr<Statement> get_;
};

}  // namespace

int main(int argc, char** argv) { return check::Main<Store>(argc, argv); }
