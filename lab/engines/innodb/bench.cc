// InnoDB, through MariaDB's embedded server: one table, prepared statements, a connection for each
// thread.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <mariadb/server/mysql_version.h>

#include "../common/batch.h"
#include "../common/driver.h"
#include "connection.h"
#include "library.h"

namespace {

constexpr uint64_t kLeastBuffer = 6 << 20;

bool IsPageSize(uint64_t size) { return size >= 4096 && size <= 65536 && (size & (size - 1)) == 0; }

class InnoDb {
 public:
  static lab::Description Describe(const lab::Settings&) {
    lab::Description description;
    description.engine = "innodb";
    description.title = "InnoDB";
    description.version = std::string("MariaDB ") + MYSQL_SERVER_VERSION;
    description.variants = {{"", "InnoDB"}};
    description.asynchronous =
        "innodb_flush_log_at_trx_commit=2: written to the log file by write(); survives the "
        "process, not the machine";
    description.synchronous =
        "innodb_flush_log_at_trx_commit=1: the log is forced to the disk before the call returns";
    description.settings =
        "cache_size and write_buffer_size together are the buffer pool (at least 6 MiB; default "
        "128 MiB); block_size "
        "is the page size if it is one of InnoDB's (default 16 KiB); max_open_files, bloom_bits "
        "and compression have "
        "no meaning. The embedded server, no network: a connection per thread, prepared "
        "statements. "
        "innodb_flush_method=fsync, so that it has the page cache of the operating system under it "
        "like the others; "
        "innodb_io_capacity=2000; all else is the default: a redo log of 96 MiB, the doublewrite "
        "buffer, REPEATABLE "
        "READ. Deadlocks are tried again. Bulk load: 100 rows a statement in transactions of "
        "100,000, with "
        "unique_checks=0. A scan reads pages of up to 1,000 rows, of about 1 MiB. compact is OPTIMIZE "
        "TABLE, waitcompact "
        "FLUSH TABLES FOR "
        "EXPORT";
    description.limits = {"every call goes through SQL: InnoDB has no other interface any more",
                          "values are not compressed"};
    return description;
  }

  explicit InnoDb(const lab::Settings& settings) : settings_(settings) {}

  void Open(const lab::Use& use) {
    synchronous_ = use.synchronous;
    library_ = std::make_unique<lab::Library>();
    words_ = {"innodb",
              "--no-defaults",
              "--datadir=" + settings_.db,
              "--tmpdir=" + settings_.db,
              "--innodb-flush-method=fsync",
              "--innodb-io-capacity=2000",
              "--innodb-buffer-pool-dump-at-shutdown=0",
              "--innodb-buffer-pool-load-at-startup=0",
              "--max-connections=600",
              "--default-storage-engine=InnoDB",
              std::string("--innodb-flush-log-at-trx-commit=") + (synchronous_ ? "1" : "2")};
    if (settings_.memory() != 0) {
      words_.push_back("--innodb-buffer-pool-size=" +
                       std::to_string(std::max(settings_.memory(), kLeastBuffer)));
    }
    if (IsPageSize(settings_.block_size)) {
      words_.push_back("--innodb-page-size=" + std::to_string(settings_.block_size));
    }
    arguments_.clear();
    for (std::string& word : words_) arguments_.push_back(&word[0]);
    arguments_.push_back(nullptr);
    if (library_->server_init(static_cast<int>(words_.size()), arguments_.data(), nullptr) != 0) {
      throw lab::Failure("MariaDB's embedded server does not start; its messages are above");
    }
    lab::Connection connection(*library_);
    connection.Run("CREATE DATABASE IF NOT EXISTS lab");
    connection.Run(
        "CREATE TABLE IF NOT EXISTS lab.kv (k VARBINARY(1100) NOT NULL PRIMARY KEY, v LONGBLOB NOT "
        "NULL) "
        "ENGINE=InnoDB");
  }

  void Adapt(const lab::Use& use) {
    if (use.synchronous == synchronous_) return;
    synchronous_ = use.synchronous;
    Run(synchronous_ ? "SET GLOBAL innodb_flush_log_at_trx_commit = 1"
                     : "SET GLOBAL innodb_flush_log_at_trx_commit = 2");
  }

  void Close() {
    library_->thread_init();
    library_->server_end();
    library_.reset();
  }

  void Destroy() {}
  void Compact() { Run("OPTIMIZE TABLE lab.kv"); }

  void WaitCompact() {
    lab::Connection connection(*library_);
    connection.Run("FLUSH TABLES lab.kv FOR EXPORT");
    connection.Run("UNLOCK TABLES");
  }

  class Session {
   public:
    explicit Session(InnoDb* engine)
        : connection_(*engine->library_),
          get_(&connection_, "SELECT v FROM lab.kv WHERE k = ?", 1, 1),
          put_(&connection_,
               "INSERT INTO lab.kv (k, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE v = VALUES(v)", 2,
               0),
          remove_(&connection_, "DELETE FROM lab.kv WHERE k = ?", 1, 0),
          first_(&connection_, "SELECT k, v FROM lab.kv ORDER BY k LIMIT ?", 1, 2),
          last_(&connection_, "SELECT k, v FROM lab.kv ORDER BY k DESC LIMIT ?", 1, 2),
          from_(&connection_, "SELECT k, v FROM lab.kv WHERE k >= ? ORDER BY k LIMIT ?", 2, 2),
          after_(&connection_, "SELECT k, v FROM lab.kv WHERE k > ? ORDER BY k LIMIT ?", 2, 2),
          before_(&connection_, "SELECT k, v FROM lab.kv WHERE k < ? ORDER BY k DESC LIMIT ?", 2,
                  2) {}

    void Put(std::string_view key, std::string_view value) {
      while (!TryPut(key, value)) {}
    }

    void Delete(std::string_view key) {
      while (!TryDelete(key)) {}
    }

    bool Get(std::string_view key, std::string* value) {
      get_.Bind(0, key);
      while (!get_.Execute()) {}
      const bool found = get_.Fetch();
      if (found) *value = get_.Column(0);
      get_.Free();
      return found;
    }

    void BatchPut(std::string_view key, std::string_view value) { batch_.Put(key, value); }
    void BatchDelete(std::string_view key) { batch_.Delete(key); }

    void Commit() {
      while (!TryCommit()) {}
      batch_.Clear();
    }

   private:
    friend class InnoDb;

    bool TryPut(std::string_view key, std::string_view value) {
      put_.Bind(0, key);
      put_.Bind(1, value);
      return put_.Execute();
    }

    bool TryDelete(std::string_view key) {
      remove_.Bind(0, key);
      return remove_.Execute();
    }

    bool TryCommit() {
      connection_.Run("START TRANSACTION");
      bool done = true;
      batch_.ForEach([&](bool is_put, std::string_view key, std::string_view value) {
        if (done) done = is_put ? TryPut(key, value) : TryDelete(key);
      });
      connection_.Run(done ? "COMMIT" : "ROLLBACK");
      return done;
    }

    lab::Connection connection_;
    lab::Statement get_, put_, remove_, first_, last_, from_, after_, before_;
    lab::Batch batch_;
  };

  // Reads a page of rows at a time: the embedded server would keep the whole result in memory.
  class Cursor {
   public:
    Cursor(Session* session, uint64_t most) : session_(*session), left_(most) {}

    ~Cursor() {
      if (page_ != nullptr) page_->Free();
    }

    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    bool First() { return NextPage(&session_.first_, nullptr); }
    bool Last() { return NextPage(&session_.last_, nullptr); }
    bool Seek(std::string_view key) { return NextPage(&session_.from_, &key); }
    bool Next() { return Step(&session_.after_); }
    bool Prev() { return Step(&session_.before_); }
    std::string_view key() const { return page_->Column(0); }
    std::string_view value() const { return page_->Column(1); }

   private:
    // The embedded server holds a page as a whole: the first has few rows, those after it of about
    // so many bytes, by the size of the last value.
    static constexpr uint64_t kFirstRows = 64;
    static constexpr uint64_t kRows = 1000;
    static constexpr uint64_t kPageBytes = 1 << 20;

    bool NextPage(lab::Statement* statement, const std::string_view* key) {
      const uint64_t fit =
          page_ == nullptr ? kFirstRows : kPageBytes / std::max<uint64_t>(value().size(), 1);
      rows_ = std::min(std::clamp<uint64_t>(fit, 1, kRows), left_);
      left_ -= rows_;
      page_ = statement;
      if (key != nullptr) page_->Bind(0, *key);
      page_->Limit(key != nullptr ? 1 : 0, rows_);
      while (!page_->Execute()) {}
      return page_->Fetch();
    }

    bool Step(lab::Statement* following) {
      if (--rows_ > 0) return page_->Fetch();
      if (left_ == 0) return false;
      last_key_ = key();
      page_->Free();
      const std::string_view key = last_key_;
      return NextPage(following, &key);
    }

    Session& session_;
    uint64_t left_;
    uint64_t rows_ = 0;
    lab::Statement* page_ = nullptr;
    std::string last_key_;
  };

  class Loader {
   public:
    explicit Loader(Session* session) : session_(*session) {
      session_.connection_.Run("SET SESSION unique_checks = 0, foreign_key_checks = 0");
      session_.connection_.Run("START TRANSACTION");
    }

    void Put(std::string_view key, std::string_view value) {
      rows_.Put(key, value);
      if (++count_ == kRows) InsertRows();
    }

    void Finish() {
      InsertRows();
      session_.connection_.Run("COMMIT");
    }

   private:
    static constexpr size_t kRows = 100;
    static constexpr uint64_t kTransaction = 100000;

    static std::string Text(size_t rows) {
      std::string text = "INSERT INTO lab.kv (k, v) VALUES (?, ?)";
      for (size_t row = 1; row < rows; row++) text += ", (?, ?)";
      return text;
    }

    void InsertRows() {
      if (count_ == 0) return;
      if (insert_ == nullptr || count_ != kRows) {
        insert_ =
            std::make_unique<lab::Statement>(&session_.connection_, Text(count_), 2 * count_, 0);
      }
      size_t at = 0;
      rows_.ForEach([&](bool, std::string_view key, std::string_view value) {
        insert_->Bind(at++, key);
        insert_->Bind(at++, value);
      });
      if (!insert_->Execute()) throw lab::Failure("MariaDB: a bulk load met another thread");
      inserted_ += count_;
      count_ = 0;
      rows_.Clear();
      if (inserted_ % kTransaction == 0) {
        session_.connection_.Run("COMMIT");
        session_.connection_.Run("START TRANSACTION");
      }
    }

    Session& session_;
    std::unique_ptr<lab::Statement> insert_;
    lab::Batch rows_;
    size_t count_ = 0;
    uint64_t inserted_ = 0;
  };

 private:
  void Run(const char* text) {
    lab::Connection connection(*library_);
    connection.Run(text);
  }

  const lab::Settings settings_;
  std::unique_ptr<lab::Library> library_;
  // The server goes on pointing to them.
  std::vector<std::string> words_;
  std::vector<char*> arguments_;
  bool synchronous_ = false;
};

}  // namespace

int main(int argc, char** argv) { return lab::Main<InnoDb>(argc, argv); }
