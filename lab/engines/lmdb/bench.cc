// LMDB.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <lmdb.h>

#include "../common/driver.h"

namespace {

void Check(int code) {
  if (code != MDB_SUCCESS) throw lab::Failure(mdb_strerror(code));
}

MDB_val ValOf(std::string_view text) {
  return MDB_val{text.size(), const_cast<char*>(text.data())};
}

std::string_view ViewOf(const MDB_val& val) {
  return std::string_view(static_cast<const char*>(val.mv_data), val.mv_size);
}

class Lmdb {
 public:
  static lab::Description Describe(const lab::Settings& settings) {
    lab::Description description;
    description.engine = "lmdb";
    description.title = "LMDB";
    int major, minor, patch;
    mdb_version(&major, &minor, &patch);
    description.version =
        std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
    description.variants = {{"nosync", "LMDB"}, {"writemap", "LMDB writemap"}};
    const bool writemap = settings.variant == "writemap";
    description.asynchronous = writemap ? "MDB_NOSYNC with MDB_WRITEMAP: changed in the mapped "
                                          "file; survives the process, but a bug of the "
                                          "process may write there too, and a crash of the machine "
                                          "may leave a file that cannot be read"
                                        : "MDB_NOSYNC: written by pwrite(); survives the process, "
                                          "but a crash of the machine may leave a file "
                                          "that cannot be read";
    description.synchronous = writemap
                                  ? "forced to the disk by msync and fsync before the call returns"
                                  : "forced to the disk by fdatasync before the call returns";
    description.settings =
        "LMDB has no cache of its own, it reads the page cache of the operating system through a "
        "map of 64 GiB: none "
        "of cache_size, write_buffer_size, block_size, max_open_files, bloom_bits and compression "
        "has a meaning. One "
        "read transaction per thread, renewed for each read; a write transaction for each write. "
        "Bulk load: MDB_APPEND "
        "in transactions of 100,000. Keyspaces are named databases";
    description.limits = {"its memory is the page cache, whatever cache_size says",
                          "values are not compressed",
                          "one write at a time; writers wait for each other"};
    description.unsupported = {{"compact", "nothing to compact: freed pages are used again"}};
    return description;
  }

  explicit Lmdb(const lab::Settings& settings) : settings_(settings) {}

  void Open(const lab::Use& use) {
    use_ = use;
    Check(mdb_env_create(&env_));
    if (keyspaces_most_ != 0)
      Check(mdb_env_set_maxdbs(env_, static_cast<MDB_dbi>(keyspaces_most_)));
    Check(mdb_env_set_mapsize(env_, kMapSize));
    Check(mdb_env_set_maxreaders(env_, 1024));
    unsigned flags = MDB_NOTLS | MDB_NOSYNC;
    if (settings_.variant == "writemap") flags |= MDB_WRITEMAP;
#ifdef LAB_NO_READAHEAD
    flags |= MDB_NORDAHEAD;
#endif
    Check(mdb_env_open(env_, settings_.db.c_str(), flags, 0644));
    MDB_txn* txn;
    Check(mdb_txn_begin(env_, nullptr, 0, &txn));
    Check(mdb_dbi_open(txn, nullptr, MDB_CREATE, &dbi_));
    Check(mdb_txn_commit(txn));
    Adapt(use);
  }

  void Adapt(const lab::Use& use) {
    Check(mdb_env_set_flags(env_, MDB_NOSYNC, use.synchronous ? 0 : 1));
  }

  // A named database each. An environment says when it is opened how many it may have.
  void OpenKeyspaces(uint64_t count) {
    if (keyspaces_.size() >= count) return;
    if (keyspaces_most_ == 0) {
      Close();
      keyspaces_most_ = settings_.keyspaces;
      Open(use_);
    }
    MDB_txn* txn;
    Check(mdb_txn_begin(env_, nullptr, 0, &txn));
    for (uint64_t number = keyspaces_.size(); number < count; number++) {
      keyspaces_.emplace_back();
      const std::string name = "keyspace-" + std::to_string(number);
      Check(mdb_dbi_open(txn, name.c_str(), MDB_CREATE, &keyspaces_.back()));
    }
    Check(mdb_txn_commit(txn));
  }

  void Close() {
    keyspaces_.clear();
    mdb_env_close(env_);
    env_ = nullptr;
  }

  void Destroy() {}
  // Freed pages are used again, the file does not shrink; an empty function would be timed as a
  // fast one.
  void Compact() { throw lab::Failure("there is nothing to compact"); }
  void WaitCompact() { Check(mdb_env_sync(env_, 1)); }

  class Session {
   public:
    explicit Session(Lmdb* engine)
        : env_(engine->env_), dbi_(engine->dbi_), keyspaces_(engine->keyspaces_) {
      Check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reading_));
      mdb_txn_reset(reading_);
    }

    ~Session() {
      if (cursor_ != nullptr) mdb_cursor_close(cursor_);
      mdb_txn_abort(reading_);
      if (batch_ != nullptr) mdb_txn_abort(batch_);
    }

    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    void Put(std::string_view key, std::string_view value) {
      BatchPut(key, value);
      Commit();
    }

    void Delete(std::string_view key) {
      BatchDelete(key);
      Commit();
    }

    bool Get(std::string_view key, std::string* value) { return GetFrom(dbi_, key, value); }

    void PutIn(uint64_t keyspace, std::string_view key, std::string_view value) {
      StoreIn(keyspaces_[keyspace], key, value, 0);
      Commit();
    }

    bool GetIn(uint64_t keyspace, std::string_view key, std::string* value) {
      return GetFrom(keyspaces_[keyspace], key, value);
    }

    bool GetFrom(MDB_dbi dbi, std::string_view key, std::string* value) {
      Check(mdb_txn_renew(reading_));
      MDB_val found_key = ValOf(key);
      MDB_val found;
      const int code = mdb_get(reading_, dbi, &found_key, &found);
      if (code == MDB_SUCCESS) *value = ViewOf(found);
      mdb_txn_reset(reading_);
      if (code == MDB_NOTFOUND) return false;
      Check(code);
      return true;
    }

    void BatchPut(std::string_view key, std::string_view value) { Store(key, value, 0); }

    void BatchDelete(std::string_view key) {
      BeginWriting();
      MDB_val gone = ValOf(key);
      const int code = mdb_del(batch_, dbi_, &gone, nullptr);
      if (code != MDB_NOTFOUND) Check(code);
    }

    void Commit() {
      MDB_txn* const txn = batch_;
      batch_ = nullptr;
      if (txn != nullptr) Check(mdb_txn_commit(txn));
    }

   private:
    friend class Lmdb;

    void BeginWriting() {
      if (batch_ == nullptr) Check(mdb_txn_begin(env_, nullptr, 0, &batch_));
    }

    void Store(std::string_view key, std::string_view value, unsigned flags) {
      StoreIn(dbi_, key, value, flags);
    }

    void StoreIn(MDB_dbi dbi, std::string_view key, std::string_view value, unsigned flags) {
      BeginWriting();
      MDB_val new_key = ValOf(key);
      MDB_val new_value = ValOf(value);
      Check(mdb_put(batch_, dbi, &new_key, &new_value, flags));
    }

    MDB_env* const env_;
    const MDB_dbi dbi_;
    const std::vector<MDB_dbi>& keyspaces_;
    MDB_txn* reading_ = nullptr;
    MDB_txn* batch_ = nullptr;
    // Of scans, one after the other; it is renewed for each, as LMDB's documentation advises.
    MDB_cursor* cursor_ = nullptr;
  };

  class Cursor {
   public:
    Cursor(Session* session, uint64_t) : txn_(session->reading_) {
      Check(mdb_txn_renew(txn_));
      if (session->cursor_ == nullptr) {
        Check(mdb_cursor_open(txn_, session->dbi_, &session->cursor_));
      } else {
        Check(mdb_cursor_renew(txn_, session->cursor_));
      }
      cursor_ = session->cursor_;
    }

    ~Cursor() { mdb_txn_reset(txn_); }

    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    bool First() { return Move(MDB_FIRST); }
    bool Last() { return Move(MDB_LAST); }

    bool Seek(std::string_view key) {
      key_ = ValOf(key);
      return Move(MDB_SET_RANGE);
    }

    bool Next() { return Move(MDB_NEXT); }
    bool Prev() { return Move(MDB_PREV); }
    std::string_view key() const { return ViewOf(key_); }
    std::string_view value() const { return ViewOf(value_); }

   private:
    bool Move(MDB_cursor_op how) {
      const int code = mdb_cursor_get(cursor_, &key_, &value_, how);
      if (code == MDB_NOTFOUND) return false;
      Check(code);
      return true;
    }

    MDB_txn* const txn_;
    MDB_cursor* cursor_ = nullptr;
    MDB_val key_{};
    MDB_val value_{};
  };

  class Loader {
   public:
    explicit Loader(Session* session) : session_(*session) {}

    void Put(std::string_view key, std::string_view value) {
      session_.Store(key, value, MDB_APPEND);
      if (++stored_ % kTransaction == 0) session_.Commit();
    }

    void Finish() { session_.Commit(); }

   private:
    static constexpr uint64_t kTransaction = 100000;
    Session& session_;
    uint64_t stored_ = 0;
  };

 private:
  // Address space and a sparse file, no memory.
  static constexpr size_t kMapSize = size_t{64} << 30;

  const lab::Settings settings_;
  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
  lab::Use use_;
  // Named databases that the environment may have, and those that are open.
  uint64_t keyspaces_most_ = 0;
  std::vector<MDB_dbi> keyspaces_;
};

}  // namespace

int main(int argc, char** argv) { return lab::Main<Lmdb>(argc, argv); }
