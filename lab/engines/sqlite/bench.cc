// SQLite: one table without row numbers, prepared statements, the write-ahead log.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sqlite3.h>

#include "../common/driver.h"

namespace {

// A prepared statement.
class Statement {
 public:
  Statement(sqlite3* db, const char* text) : db_(db) {
    Check(sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr));
  }

  ~Statement() { sqlite3_finalize(statement_); }

  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // The bytes have to stay until the statement is reset.
  void Bind(int at, std::string_view bytes) {
    // A null pointer would bind NULL.
    const char* data = bytes.empty() ? "" : bytes.data();
    Check(sqlite3_bind_blob(statement_, at, data, static_cast<int>(bytes.size()), SQLITE_STATIC));
  }

  // Whether there is a row.
  bool Step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) Check(code);
    return false;
  }

  std::string_view Column(int at) const {
    const void* data = sqlite3_column_blob(statement_, at);
    return std::string_view(static_cast<const char*>(data),
                            static_cast<size_t>(sqlite3_column_bytes(statement_, at)));
  }

  void Reset() { sqlite3_reset(statement_); }

  void Run() {
    Step();
    Check(sqlite3_reset(statement_));
  }

 private:
  void Check(int code) const {
    if (code != SQLITE_OK) throw lab::Failure(std::string("SQLite: ") + sqlite3_errmsg(db_));
  }

  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
};

class Connection {
 public:
  Connection(const lab::Settings& settings, uint64_t connections) {
    const std::string path = settings.db + "/bench.sqlite";
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    sqlite3* db = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &db, flags, nullptr);
    db_.reset(db);
    if (code != SQLITE_OK) throw lab::Failure(path + ": " + sqlite3_errstr(code));
    sqlite3_busy_timeout(db, 600000);
    if (connections == 1) Run("PRAGMA locking_mode = EXCLUSIVE");
    const uint64_t page = settings.block_size != 0 ? settings.block_size : kDefaultPage;
    Run("PRAGMA page_size = " + std::to_string(page));
    if (settings.memory() != 0) {
      Run("PRAGMA cache_size = -" +
          std::to_string(std::max<uint64_t>(settings.memory() / connections / 1024, 1)));
    }
    Run("PRAGMA mmap_size = " + std::to_string(kMapped));
    // Debian compiles it on: deleted content is overwritten with zeros.
    Run("PRAGMA secure_delete = OFF");
    Run("PRAGMA journal_mode = WAL");
    const uint64_t log = std::max<uint64_t>(settings.write_buffer_size, 4 << 20);
    Run("PRAGMA wal_autocheckpoint = " + std::to_string(log / page));
    Run("CREATE TABLE IF NOT EXISTS kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID");
    get_ = std::make_unique<Statement>(db, "SELECT v FROM kv WHERE k = ?1");
    put_ = std::make_unique<Statement>(db, "REPLACE INTO kv (k, v) VALUES (?1, ?2)");
    remove_ = std::make_unique<Statement>(db, "DELETE FROM kv WHERE k = ?1");
    remove_range_ = std::make_unique<Statement>(db, "DELETE FROM kv WHERE k >= ?1 AND k < ?2");
    begin_ = std::make_unique<Statement>(db, "BEGIN IMMEDIATE");
    commit_ = std::make_unique<Statement>(db, "COMMIT");
    upwards_ = std::make_unique<Statement>(db, "SELECT k, v FROM kv ORDER BY k");
    downwards_ = std::make_unique<Statement>(db, "SELECT k, v FROM kv ORDER BY k DESC");
    from_ = std::make_unique<Statement>(db, "SELECT k, v FROM kv WHERE k >= ?1 ORDER BY k");
  }

  // FULL waits for the disk in every commit, NORMAL in every checkpoint, OFF never.
  void Synchronous(const char* level) { Run(std::string("PRAGMA synchronous = ") + level); }

  void Run(const std::string& text) {
    char* problem = nullptr;
    if (sqlite3_exec(db_.get(), text.c_str(), nullptr, nullptr, &problem) != SQLITE_OK) {
      const std::string words = text + ": " + (problem != nullptr ? problem : "failed");
      sqlite3_free(problem);
      throw lab::Failure("SQLite: " + words);
    }
  }

  Statement& get() { return *get_; }
  Statement& put() { return *put_; }
  Statement& remove() { return *remove_; }
  Statement& remove_range() { return *remove_range_; }
  Statement& begin() { return *begin_; }
  Statement& commit() { return *commit_; }
  Statement& upwards() { return *upwards_; }
  Statement& downwards() { return *downwards_; }
  Statement& from() { return *from_; }

 private:
  static constexpr uint64_t kDefaultPage = 4096;
  // Of the file; as much as SQLite allows.
  static constexpr uint64_t kMapped = 0x7fff0000;

  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };

  // The statements go before the database.
  std::unique_ptr<sqlite3, Close> db_;
  std::unique_ptr<Statement> get_, put_, remove_, remove_range_, begin_, commit_, upwards_,
      downwards_, from_;
};

class Sqlite {
 public:
  static lab::Description Describe(const lab::Settings& settings) {
    lab::Description description;
    description.engine = "sqlite";
    description.title = "SQLite";
    description.version = sqlite3_libversion();
    description.variants = {{"", "SQLite"}, {kNormal, "SQLite, synchronous=NORMAL"}};
    description.asynchronous =
        settings.variant == kNormal
            ? "WAL with synchronous=NORMAL: written to the log file by write(), which only a "
              "checkpoint forces to the "
              "disk; survives the process, and a crash of the machine costs the last writes and no "
              "more"
            : "WAL with synchronous=OFF: written to the log file by write(); survives the process, "
              "but checkpoints wait "
              "for nothing: a crash of the machine may leave a file that cannot be read";
    description.synchronous =
        "WAL with synchronous=FULL: the log is forced to the disk by fdatasync in every commit";
    description.settings =
        "cache_size and write_buffer_size together are the page cache (default 2 MiB), divided "
        "between the "
        "connections; block_size is the page size (default 4 KiB); a checkpoint comes after "
        "write_buffer_size, "
        "or 4 MiB if that is more, of log; max_open_files, bloom_bits and compression have no "
        "meaning. Up to 2 GiB of the file are mapped (mmap_size), and secure_delete is off. One table "
        "WITHOUT ROWID, prepared "
        "statements, REPLACE for puts. One thread: exclusive locking. More: one connection for "
        "each, normal locking. "
        "Bulk load: rows in order in transactions of 100,000. compact is VACUUM, waitcompact a "
        "checkpoint";
    description.limits = {"values are not compressed",
                          "one write at a time; writers wait for each other by polling"};
    return description;
  }

  explicit Sqlite(const lab::Settings& settings) : settings_(settings) {}

  void Open(const lab::Use& use) {
    for (uint64_t i = 0; i < use.sessions; i++) {
      connections_.push_back(std::make_unique<Connection>(settings_, use.sessions));
      connections_.back()->Synchronous(Level(use));
    }
    taken_ = 0;
  }

  // A connection that locks everybody else out cannot become one of several, and their caches are
  // smaller.
  void Adapt(const lab::Use& use) {
    if (use.sessions != connections_.size()) {
      Close();
      return Open(use);
    }
    for (const auto& connection : connections_) connection->Synchronous(Level(use));
    taken_ = 0;
  }

  void Close() { connections_.clear(); }
  void Destroy() {}

  void Compact() {
    connections_[0]->Run("VACUUM");
    WaitCompact();
  }

  void WaitCompact() { connections_[0]->Run("PRAGMA wal_checkpoint(RESTART)"); }

  class Session {
   public:
    explicit Session(Sqlite* engine)
        : connection_(*engine->connections_.at(engine->taken_.fetch_add(1))) {}

    void Put(std::string_view key, std::string_view value) {
      Statement& put = connection_.put();
      put.Bind(1, key);
      put.Bind(2, value);
      put.Run();
    }

    void Delete(std::string_view key) {
      Statement& remove = connection_.remove();
      remove.Bind(1, key);
      remove.Run();
    }

    void DeleteRange(std::string_view first, std::string_view end) {
      Statement& remove = connection_.remove_range();
      remove.Bind(1, first);
      remove.Bind(2, end);
      remove.Run();
    }

    bool Get(std::string_view key, std::string* value) {
      Statement& get = connection_.get();
      get.Bind(1, key);
      const bool found = get.Step();
      if (found) *value = get.Column(0);
      get.Reset();
      return found;
    }

    void BatchPut(std::string_view key, std::string_view value) {
      Begin();
      Put(key, value);
    }

    void BatchDelete(std::string_view key) {
      Begin();
      Delete(key);
    }

    void Commit() {
      if (in_batch_) connection_.commit().Run();
      in_batch_ = false;
    }

   private:
    friend class Sqlite;

    void Begin() {
      if (!in_batch_) connection_.begin().Run();
      in_batch_ = true;
    }

    Connection& connection_;
    bool in_batch_ = false;
  };

  class Cursor {
   public:
    Cursor(Session* session, uint64_t) : connection_(session->connection_) {}

    ~Cursor() {
      if (statement_ != nullptr) statement_->Reset();
    }

    bool First() { return Begin(&connection_.upwards()); }
    bool Last() { return Begin(&connection_.downwards()); }

    bool Seek(std::string_view key) {
      connection_.from().Bind(1, key);
      return Begin(&connection_.from());
    }

    bool Next() { return statement_->Step(); }
    bool Prev() { return statement_->Step(); }
    std::string_view key() const { return statement_->Column(0); }
    std::string_view value() const { return statement_->Column(1); }

   private:
    bool Begin(Statement* statement) {
      statement_ = statement;
      return statement->Step();
    }

    Connection& connection_;
    Statement* statement_ = nullptr;
  };

  class Loader {
   public:
    explicit Loader(Session* session) : session_(*session) {}

    void Put(std::string_view key, std::string_view value) {
      session_.BatchPut(key, value);
      if (++stored_ % kTransaction == 0) session_.Commit();
    }

    void Finish() { session_.Commit(); }

   private:
    static constexpr uint64_t kTransaction = 100000;
    Session& session_;
    uint64_t stored_ = 0;
  };

 private:
  // The variant that promises what LevelDB's asynchronous write promises.
  static constexpr const char* kNormal = "normal";

  const char* Level(const lab::Use& use) const {
    if (use.synchronous) return "FULL";
    return settings_.variant == kNormal ? "NORMAL" : "OFF";
  }

  const lab::Settings settings_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::atomic<size_t> taken_{0};
};

}  // namespace

int main(int argc, char** argv) { return lab::Main<Sqlite>(argc, argv); }
