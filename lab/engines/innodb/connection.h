// A thread's connection to the embedded server, and its prepared statements.

#ifndef LAB_INNODB_CONNECTION_H_
#define LAB_INNODB_CONNECTION_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "library.h"

namespace lab {

// Made, used and destroyed by one thread.
class Connection {
 public:
  explicit Connection(const Library& library) : library_(library) {
    if (library.thread_init() != 0) throw Failure("MariaDB: mysql_thread_init failed");
    handle_ = library.init(nullptr);
    if (handle_ == nullptr) throw Failure("MariaDB: no memory");
    if (library.real_connect(handle_, nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0) ==
        nullptr) {
      throw Failure(std::string("MariaDB: ") + library.error(handle_));
    }
  }

  ~Connection() {
    library_.close(handle_);
    library_.thread_end();
  }

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Run(const char* text) {
    if (library_.query(handle_, text) != 0)
      throw Failure(std::string(text) + ": " + library_.error(handle_));
    if (MYSQL_RES* result = library_.store_result(handle_)) library_.free_result(result);
  }

  const Library& library() const { return library_; }
  MYSQL* handle() { return handle_; }

 private:
  const Library& library_;
  MYSQL* handle_ = nullptr;
};

// A prepared statement. Its parameters are strings of bytes, and a number where Limit is called;
// its columns, bytes.
class Statement {
 public:
  Statement(Connection* connection, const std::string& text, size_t parameters, size_t columns)
      : library_(connection->library()),
        handle_(library_.stmt_init(connection->handle())),
        parameters_(parameters),
        lengths_(parameters),
        columns_(columns),
        sizes_(columns) {
    if (handle_ == nullptr) throw Failure("MariaDB: no memory");
    if (library_.stmt_prepare(handle_, text.data(), text.size()) != 0) throw Problem();
    for (std::string& buffer : columns_) buffer.resize(4096);
  }

  ~Statement() { library_.stmt_close(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // The bytes have to stay until the statement is executed.
  void Bind(size_t at, std::string_view bytes) {
    MYSQL_BIND& bind = parameters_[at];
    bind.buffer_type = MYSQL_TYPE_BLOB;
    bind.buffer = const_cast<char*>(bytes.data());
    bind.buffer_length = bytes.size();
    lengths_[at] = bytes.size();
    bind.length = &lengths_[at];
  }

  void Limit(size_t at, uint64_t number) {
    number_ = number;
    MYSQL_BIND& bind = parameters_[at];
    bind.buffer_type = MYSQL_TYPE_LONGLONG;
    bind.buffer = &number_;
    bind.is_unsigned = 1;
  }

  // False: it was given up for another thread's sake, try again.
  bool Execute() {
    if (!parameters_.empty() && library_.stmt_bind_param(handle_, parameters_.data()) != 0)
      throw Problem();
    if (library_.stmt_execute(handle_) != 0) {
      const unsigned code = library_.stmt_errno(handle_);
      if (code == kDeadlock || code == kLockWaitTimeout) return false;
      throw Problem();
    }
    if (!columns_.empty()) BindColumns();
    return true;
  }

  // Whether there is another row.
  bool Fetch() {
    const int code = library_.stmt_fetch(handle_);
    if (code == MYSQL_NO_DATA) return false;
    if (code != 0 && code != MYSQL_DATA_TRUNCATED) throw Problem();
    if (code == MYSQL_DATA_TRUNCATED) FetchLongColumns();
    return true;
  }

  std::string_view Column(size_t at) const {
    return std::string_view(columns_[at].data(), sizes_[at]);
  }
  void Free() { library_.stmt_free_result(handle_); }

 private:
  static constexpr unsigned kDeadlock = 1213;
  static constexpr unsigned kLockWaitTimeout = 1205;

  MYSQL_BIND ColumnBind(size_t at) {
    MYSQL_BIND bind;
    std::memset(&bind, 0, sizeof bind);
    bind.buffer_type = MYSQL_TYPE_BLOB;
    bind.buffer = &columns_[at][0];
    bind.buffer_length = columns_[at].size();
    bind.length = &sizes_[at];
    return bind;
  }

  void BindColumns() {
    std::vector<MYSQL_BIND>& binds = result_;
    binds.clear();
    for (size_t at = 0; at < columns_.size(); at++) binds.push_back(ColumnBind(at));
    if (library_.stmt_bind_result(handle_, binds.data()) != 0) throw Problem();
  }

  void FetchLongColumns() {
    for (size_t at = 0; at < columns_.size(); at++) {
      if (sizes_[at] <= columns_[at].size()) continue;
      columns_[at].resize(sizes_[at]);
      MYSQL_BIND bind = ColumnBind(at);
      if (library_.stmt_fetch_column(handle_, &bind, static_cast<unsigned>(at), 0) != 0)
        throw Problem();
    }
    BindColumns();
  }

  Failure Problem() const {
    return Failure(std::string("MariaDB: ") + library_.stmt_error(handle_));
  }

  const Library& library_;
  MYSQL_STMT* const handle_;
  std::vector<MYSQL_BIND> parameters_;
  std::vector<unsigned long> lengths_;
  uint64_t number_ = 0;
  std::vector<std::string> columns_;
  std::vector<unsigned long> sizes_;
  std::vector<MYSQL_BIND> result_;
};

}  // namespace lab

#endif  // LAB_INNODB_CONNECTION_H_
