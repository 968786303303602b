// Berkeley DB: a B-tree in a transactional environment.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <db.h>

#include "../common/batch.h"
#include "../common/driver.h"

namespace {

void Check(int code) {
  if (code != 0) throw lab::Failure(std::string("Berkeley DB: ") + db_strerror(code));
}

DBT InputOf(std::string_view text) {
  DBT dbt{};
  dbt.data = const_cast<char*>(text.data());
  dbt.size = static_cast<u_int32_t>(text.size());
  return dbt;
}

// A buffer that the library writes into.
class Output {
 public:
  Output() : bytes_(4096, '\0') { Point(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  DBT* dbt() { return &dbt_; }
  std::string_view view() const { return std::string_view(bytes_.data(), dbt_.size); }

  void Set(std::string_view text) {
    Reserve(text.size());
    std::memcpy(&bytes_[0], text.data(), text.size());
    dbt_.size = static_cast<u_int32_t>(text.size());
  }

  // After DB_BUFFER_SMALL: size is what is needed.
  void Grow() { Reserve(dbt_.size); }

 private:
  void Reserve(size_t size) {
    if (size <= bytes_.size()) return;
    bytes_.resize(2 * size);
    Point();
  }

  void Point() {
    dbt_.data = &bytes_[0];
    dbt_.ulen = static_cast<u_int32_t>(bytes_.size());
    dbt_.flags = DB_DBT_USERMEM;
  }

  std::string bytes_;
  DBT dbt_{};
};

// Calls `get` until its buffers are large enough and no other thread's locks are in the way.
template <typename Get>
int Retry(Output* key, Output* value, const Get& get) {
  for (;;) {
    const int code = get();
    if (code == DB_BUFFER_SMALL) {
      if (key != nullptr) key->Grow();
      value->Grow();
    } else if (code != DB_LOCK_DEADLOCK) {
      return code;
    }
  }
}

// Writes checkpoints, so that logs can go and recovery stays short.
class Checkpointer {
 public:
  explicit Checkpointer(DB_ENV* env) : thread_([this, env] { Run(env); }) {}

  ~Checkpointer() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  static constexpr u_int32_t kKilobytes = 64 * 1024;

  void Run(DB_ENV* env) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(200), [this] { return ending_; })) {
      lock.unlock();
      const int code = env->txn_checkpoint(env, kKilobytes, 0, 0);
      if (code != 0) std::fprintf(stderr, "bdb: checkpoint: %s\n", db_strerror(code));
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;
};

class BerkeleyDb {
 public:
  static lab::Description Describe(const lab::Settings&) {
    lab::Description description;
    description.engine = "bdb";
    description.title = "Berkeley DB";
    int major, minor, patch;
    db_version(&major, &minor, &patch);
    description.version =
        std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
    description.variants = {{"", "Berkeley DB"}};
    description.asynchronous =
        "DB_TXN_WRITE_NOSYNC: written to the log file by write(); survives the process, not the "
        "machine";
    description.synchronous = "the log is forced to the disk by fdatasync in every commit";
    description.settings =
        "cache_size and write_buffer_size together are the cache (default 256 KiB; the library "
        "adds a quarter below "
        "500 MiB); block_size is the page size (default that of the file system, 4 KiB); "
        "max_open_files, bloom_bits "
        "and compression have no meaning. A B-tree in a private transactional environment with "
        "logging, locking and "
        "deadlock detection, 200,000 locks; every write commits by itself, deadlocks are tried "
        "again; a checkpoint for "
        "every 64 MiB of log by a thread of its own, old logs removed. Bulk load: DB_MULTIPLE_KEY, "
        "1,000 entries a "
        "transaction. compact is DB->compact, waitcompact a checkpoint";
    description.limits = {"values are not compressed"};
    return description;
  }

  explicit BerkeleyDb(const lab::Settings& settings) : settings_(settings) {}

  void Open(const lab::Use& use) {
    Check(db_env_create(&env_, 0));
    env_->set_errpfx(env_, "bdb");
    env_->set_errfile(env_, stderr);
    if (settings_.memory() != 0) {
      const uint64_t gigabyte = uint64_t{1} << 30;
      Check(env_->set_cachesize(env_, static_cast<u_int32_t>(settings_.memory() / gigabyte),
                                static_cast<u_int32_t>(settings_.memory() % gigabyte), 1));
    }
    Check(env_->set_lk_detect(env_, DB_LOCK_DEFAULT));
    Check(env_->set_lk_max_locks(env_, kLocks));
    Check(env_->set_lk_max_objects(env_, kLocks));
    Check(env_->set_lk_max_lockers(env_, 10000));
    Check(env_->set_tx_max(env_, 1000));
    Check(env_->log_set_config(env_, DB_LOG_AUTO_REMOVE, 1));
    const u_int32_t flags = DB_CREATE | DB_RECOVER | DB_PRIVATE | DB_THREAD | DB_INIT_MPOOL |
                            DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK;
    Check(env_->open(env_, settings_.db.c_str(), flags, 0644));
    Check(db_create(&db_, env_, 0));
    if (settings_.block_size != 0)
      Check(db_->set_pagesize(db_, static_cast<u_int32_t>(settings_.block_size)));
    Check(db_->open(db_, nullptr, "bench.db", nullptr, DB_BTREE,
                    DB_CREATE | DB_AUTO_COMMIT | DB_THREAD, 0644));
    checkpointer_ = std::make_unique<Checkpointer>(env_);
    Adapt(use);
  }

  void Adapt(const lab::Use& use) {
    Check(env_->set_flags(env_, DB_TXN_WRITE_NOSYNC, use.synchronous ? 0 : 1));
  }

  void Close() {
    checkpointer_.reset();
    Check(db_->close(db_, 0));
    WaitCompact();
    Check(env_->close(env_, 0));
  }

  void Destroy() {}

  void Compact() {
    DB_COMPACT data{};
    Check(db_->compact(db_, nullptr, nullptr, nullptr, &data, DB_FREE_SPACE, nullptr));
  }

  void WaitCompact() { Check(env_->txn_checkpoint(env_, 0, 0, DB_FORCE)); }

  class Session {
   public:
    explicit Session(BerkeleyDb* engine) : env_(engine->env_), db_(engine->db_) {}

    void Put(std::string_view key, std::string_view value) {
      while (!Done(Insert(nullptr, key, value))) {}
    }

    void Delete(std::string_view key) {
      while (!Done(Remove(nullptr, key))) {}
    }

    bool Get(std::string_view key, std::string* value) {
      DBT input = InputOf(key);
      const int code =
          Retry(nullptr, &value_, [&] { return db_->get(db_, nullptr, &input, value_.dbt(), 0); });
      if (code == DB_NOTFOUND) return false;
      Check(code);
      *value = value_.view();
      return true;
    }

    void BatchPut(std::string_view key, std::string_view value) { batch_.Put(key, value); }
    void BatchDelete(std::string_view key) { batch_.Delete(key); }

    void Commit() {
      const auto apply = [this](DB_TXN* txn) {
        int code = 0;
        batch_.ForEach([&](bool is_put, std::string_view key, std::string_view value) {
          if (code == 0) code = is_put ? Insert(txn, key, value) : Remove(txn, key);
        });
        return code;
      };
      while (!InTransaction(apply)) {}
      batch_.Clear();
    }

   private:
    friend class BerkeleyDb;

    int Insert(DB_TXN* txn, std::string_view key, std::string_view value) {
      DBT new_key = InputOf(key);
      DBT new_value = InputOf(value);
      return db_->put(db_, txn, &new_key, &new_value, 0);
    }

    int Remove(DB_TXN* txn, std::string_view key) {
      DBT gone = InputOf(key);
      const int code = db_->del(db_, txn, &gone, 0);
      return code == DB_NOTFOUND ? 0 : code;
    }

    // False: it was given up for another thread's sake, try again.
    static bool Done(int code) {
      if (code == DB_LOCK_DEADLOCK) return false;
      Check(code);
      return true;
    }

    template <typename Apply>
    bool InTransaction(const Apply& apply) {
      DB_TXN* txn = nullptr;
      Check(env_->txn_begin(env_, nullptr, &txn, 0));
      const int code = apply(txn);
      if (code != 0) {
        Check(txn->abort(txn));
        return Done(code);
      }
      return Done(txn->commit(txn, 0));
    }

    DB_ENV* const env_;
    DB* const db_;
    Output value_;
    lab::Batch batch_;
  };

  class Cursor {
   public:
    Cursor(Session* session, uint64_t) {
      Check(session->db_->cursor(session->db_, nullptr, &cursor_, 0));
    }
    ~Cursor() { cursor_->close(cursor_); }
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    bool First() { return Move(DB_FIRST); }
    bool Last() { return Move(DB_LAST); }

    bool Seek(std::string_view key) {
      key_.Set(key);
      return Move(DB_SET_RANGE);
    }

    bool Next() { return Move(DB_NEXT); }
    bool Prev() { return Move(DB_PREV); }
    std::string_view key() const { return key_.view(); }
    std::string_view value() const { return value_.view(); }

   private:
    bool Move(u_int32_t how) {
      const int code = Retry(&key_, &value_,
                             [&] { return cursor_->get(cursor_, key_.dbt(), value_.dbt(), how); });
      if (code == DB_NOTFOUND) return false;
      Check(code);
      return true;
    }

    DBC* cursor_ = nullptr;
    Output key_;
    Output value_;
  };

  class Loader {
   public:
    explicit Loader(Session* session) : session_(*session) {}

    void Put(std::string_view key, std::string_view value) {
      batch_.Put(key, value);
      bytes_ += key.size() + value.size() + kPerEntry;
      if (++count_ == kEntries) Finish();
    }

    void Finish() {
      if (count_ == 0) return;
      std::vector<char> buffer((bytes_ + 1024) / 4 * 4);
      DBT entries{};
      entries.data = buffer.data();
      entries.ulen = static_cast<u_int32_t>(buffer.size());
      entries.flags = DB_DBT_USERMEM | DB_DBT_BULK;
      void* position;
      DB_MULTIPLE_WRITE_INIT(position, &entries);
      batch_.ForEach([&](bool, std::string_view key, std::string_view value) {
        DB_MULTIPLE_KEY_WRITE_NEXT(position, &entries, key.data(), key.size(), value.data(),
                                   value.size());
      });
      if (position == nullptr)
        throw lab::Failure("Berkeley DB: the buffer of a bulk load is too small");
      DBT none{};
      const auto apply = [&](DB_TXN* txn) {
        return session_.db_->put(session_.db_, txn, &entries, &none, DB_MULTIPLE_KEY);
      };
      while (!session_.InTransaction(apply)) {}
      batch_.Clear();
      bytes_ = 0;
      count_ = 0;
    }

   private:
    static constexpr uint64_t kEntries = 1000;
    static constexpr size_t kPerEntry = 4 * sizeof(u_int32_t);

    Session& session_;
    lab::Batch batch_;
    size_t bytes_ = 0;
    uint64_t count_ = 0;
  };

 private:
  static constexpr u_int32_t kLocks = 200000;

  const lab::Settings settings_;
  DB_ENV* env_ = nullptr;
  DB* db_ = nullptr;
  std::unique_ptr<Checkpointer> checkpointer_;
};

}  // namespace

int main(int argc, char** argv) { return lab::Main<BerkeleyDb>(argc, argv); }
