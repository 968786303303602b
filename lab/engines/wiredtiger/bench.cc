// WiredTiger: its B-tree or its LSM tree, with a log or, as in 2012, without one.

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include <wiredtiger.h>

#include "../common/batch.h"
#include "../common/driver.h"

namespace {

constexpr char kTable[] = "table:kv";
// Milliseconds after which it is said that there is no room in the cache. What waits for room that
// its own transaction takes would wait for ever.
constexpr int kCacheWait = 3000;

void Check(int code) {
  if (code != 0) throw lab::Failure(std::string("WiredTiger: ") + wiredtiger_strerror(code));
}

WT_ITEM ItemOf(std::string_view text) {
  WT_ITEM item{};
  item.data = text.data();
  item.size = text.size();
  return item;
}

std::string_view ViewOf(const WT_ITEM& item) {
  return std::string_view(static_cast<const char*>(item.data), item.size);
}

bool HasLog(const lab::Settings& settings) {
  return settings.variant.find("nolog") == std::string::npos;
}
bool IsLsm(const lab::Settings& settings) { return settings.variant.compare(0, 3, "lsm") == 0; }

class WiredTiger {
 public:
  static lab::Description Describe(const lab::Settings& settings) {
    lab::Description description;
    description.engine = "wiredtiger";
    description.title = WIREDTIGER_VERSION_MAJOR > 3
                            ? "WiredTiger " + std::to_string(WIREDTIGER_VERSION_MAJOR)
                            : "WiredTiger";
    description.version = std::to_string(WIREDTIGER_VERSION_MAJOR) + "." +
                          std::to_string(WIREDTIGER_VERSION_MINOR) + "." +
                          std::to_string(WIREDTIGER_VERSION_PATCH);
    description.variants = {{"btree", description.title + " B-tree"},
                            {"lsm", description.title + " LSM"},
                            {"nolog", description.title + " B-tree, no log"},
                            {"lsm-nolog", description.title + " LSM, no log"}};
    if (HasLog(settings)) {
      description.asynchronous =
          "transaction_sync method none: written to the log file by write(); survives the process, "
          "not the machine";
      description.synchronous =
          "transaction_sync method fsync: the log is on the disk before the call returns";
    } else {
      description.asynchronous =
          "nothing: changes stay in the process until a checkpoint, so a killed process loses "
          "acknowledged writes";
      description.synchronous = "cannot be had without a log";
      description.limits = {
          "asynchronous writes do not reach the operating system: not to be ranked with the "
          "others'"};
      for (const char* name : {"fillsync", "fillseqsync"}) {
        description.unsupported[name] = "without a log only a checkpoint is durable";
      }
    }
    description.settings =
        "cache_size and write_buffer_size together are the cache (default 100 MiB), which holds "
        "pages uncompressed; "
        "block_size is leaf_page_max (default 32 KiB; internal_page_max is 16 KiB); compression: "
        "snappy or none; "
        "checkpoints every 60 s; eviction_dirty_target=70 and eviction_dirty_trigger=90, since the "
        "defaults slow "
        "random writes down several times; bloom_bits is for the LSM tree's filters (default 16); "
        "max_open_files has no "
        "meaning. ";
    if (IsLsm(settings))
      description.settings += "LSM chunks of 20 MiB, or as much as the cache allows. ";
    if (!HasLog(settings))
      description.settings += "No checksums, memory_page_max nearly the cache, as in 2012. ";
    description.settings +=
        "One session and one cursor per thread, reset after use. Bulk load: the bulk cursor. "
        "Ranges are deleted by "
        "WT_SESSION::truncate, keyspaces are tables. compact is "
        "WT_SESSION::compact, waitcompact a checkpoint and the end of background work";
    if (IsLsm(settings)) {
      description.limits.push_back(
          "waitcompact ends 0.3 s after the process became idle, since it cannot be asked");
    }
    return description;
  }

  explicit WiredTiger(const lab::Settings& settings) : settings_(settings) {}

  void Open(const lab::Use& use) {
    synchronous_ = use.synchronous;
    std::string config = "create,session_max=600,checkpoint=(wait=60)";
    // With the defaults of 5 and 20 per cent writers of random keys do eviction's work most of the
    // time.
    config += ",eviction_dirty_target=70,eviction_dirty_trigger=90";
    config += ",cache_size=" + std::to_string(Cache()) +
              ",cache_max_wait_ms=" + std::to_string(kCacheWait);
#ifndef LAB_BUILTIN_SNAPPY
    if (settings_.compression) config += ",extensions=[libwiredtiger_snappy.so]";
#endif
    if (HasLog(settings_)) {
      config += std::string(",log=(enabled=true),transaction_sync=(enabled=true,method=") +
                (synchronous_ ? "fsync" : "none") + ")";
    }
    Check(wiredtiger_open(settings_.db.c_str(), nullptr, config.c_str(), &connection_));
    WT_SESSION* session = NewSession();
    Check(session->create(session, kTable, TableConfig().c_str()));
    Check(session->close(session, nullptr));
  }

  // The log is configured when the database is opened.
  void Adapt(const lab::Use& use) {
    if (use.synchronous == synchronous_) return;
    Close();
    Open(use);
  }

  // A table each.
  void OpenKeyspaces(uint64_t count) {
    WT_SESSION* session = NewSession();
    for (; keyspaces_ < count; keyspaces_++)
      Check(session->create(session, KeyspaceName(keyspaces_).c_str(), TableConfig().c_str()));
    Check(session->close(session, nullptr));
  }

  void Close() {
    keyspaces_ = 0;
    Check(connection_->close(connection_, nullptr));
  }

  void Destroy() {}

  void Compact() {
    WT_SESSION* session = NewSession();
    Check(session->compact(session, kTable, "timeout=0"));
    Check(session->close(session, nullptr));
  }

  uint64_t WaitCompact() {
    WT_SESSION* session = NewSession();
    Check(session->checkpoint(session, nullptr));
    Check(session->close(session, nullptr));
    return IsLsm(settings_) ? lab::WaitUntilQuiet() : 0;
  }

  class Session {
   public:
    explicit Session(WiredTiger* engine) : engine_(*engine), session_(engine->NewSession()) {}
    ~Session() { session_->close(session_, nullptr); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    void Put(std::string_view key, std::string_view value) {
      while (!Done(Insert(key, value))) {}
    }

    void Delete(std::string_view key) {
      while (!Done(Remove(key))) {}
    }

    bool Get(std::string_view key, std::string* value) {
      return GetFrom(TheCursor(), key, value);
    }

    void PutIn(uint64_t keyspace, std::string_view key, std::string_view value) {
      while (!Done(InsertInto(CursorOf(keyspace), key, value))) {}
    }

    bool GetIn(uint64_t keyspace, std::string_view key, std::string* value) {
      return GetFrom(CursorOf(keyspace), key, value);
    }

    // Cursors stand on the first and the last key of the range; the range is empty if they do not.
    void DeleteRange(std::string_view first, std::string_view end) {
      WT_CURSOR* stop = nullptr;
      Check(session_->open_cursor(session_, kTable, nullptr, nullptr, &stop));
      while (!Done(Truncate(first, end, stop))) {}
      Check(stop->close(stop));
    }

    bool GetFrom(WT_CURSOR* cursor, std::string_view key, std::string* value) {
      SetKey(cursor, key);
      const int code = cursor->search(cursor);
      if (code == WT_NOTFOUND) return false;
      Check(code);
      WT_ITEM item;
      Check(cursor->get_value(cursor, &item));
      *value = ViewOf(item);
      // A cursor that stays where it is keeps its page in the cache.
      Check(cursor->reset(cursor));
      return true;
    }

    void BatchPut(std::string_view key, std::string_view value) { batch_.Put(key, value); }
    void BatchDelete(std::string_view key) { batch_.Delete(key); }

    // Of two batches that change the same key the later one is rolled back. Where every batch meets
    // another, none would succeed for long: a rolled back batch is repeated alone.
    void Commit() {
      bool done;
      {
        std::shared_lock<std::shared_mutex> with_others(engine_.batches_);
        done = TryCommit();
      }
      if (!done) {
        std::unique_lock<std::shared_mutex> alone(engine_.batches_);
        // Nobody is in its way now; only its own pages can be.
        for (int tries = 3; !TryCommit(); tries--) {
          if (tries == 1)
            throw lab::Failure(
                "WiredTiger: the pages that a batch changes do not fit into the cache");
        }
      }
      batch_.Clear();
    }

   private:
    friend class WiredTiger;

    // Not before it is needed: a bulk load has to be the only user of the table.
    WT_CURSOR* TheCursor() {
      if (cursor_ == nullptr)
        Check(session_->open_cursor(session_, kTable, nullptr, "overwrite=true", &cursor_));
      return cursor_;
    }

    WT_CURSOR* CursorOf(uint64_t keyspace) {
      if (cursors_.size() <= keyspace) cursors_.resize(keyspace + 1);
      WT_CURSOR*& cursor = cursors_[keyspace];
      if (cursor == nullptr) {
        Check(session_->open_cursor(session_, KeyspaceName(keyspace).c_str(), nullptr,
                                    "overwrite=true", &cursor));
      }
      return cursor;
    }

    int Truncate(std::string_view first, std::string_view end, WT_CURSOR* stop) {
      WT_CURSOR* const start = TheCursor();
      int where = 0;
      SetKey(start, first);
      int code = start->search_near(start, &where);
      if (code == 0 && where < 0) code = start->next(start);
      if (code == 0) {
        SetKey(stop, end);
        code = stop->search_near(stop, &where);
        if (code == 0 && where >= 0) code = stop->prev(stop);
      }
      int order = 0;
      if (code == 0) code = start->compare(start, stop, &order);
      if (code == 0 && order <= 0) code = session_->truncate(session_, nullptr, start, stop, nullptr);
      const int reset = start->reset(start);
      const int reset_stop = stop->reset(stop);
      if (code == WT_NOTFOUND) code = 0;
      return code != 0 ? code : reset != 0 ? reset : reset_stop;
    }

    static void SetKey(WT_CURSOR* cursor, std::string_view key) {
      const WT_ITEM item = ItemOf(key);
      cursor->set_key(cursor, &item);
    }

    int Insert(std::string_view key, std::string_view value) {
      return InsertInto(TheCursor(), key, value);
    }

    static int InsertInto(WT_CURSOR* cursor, std::string_view key, std::string_view value) {
      SetKey(cursor, key);
      const WT_ITEM item = ItemOf(value);
      cursor->set_value(cursor, &item);
      return cursor->insert(cursor);
    }

    int Remove(std::string_view key) {
      WT_CURSOR* const cursor = TheCursor();
      SetKey(cursor, key);
      const int code = cursor->remove(cursor);
      const int reset = cursor->reset(cursor);
      return code == 0 ? reset : code == WT_NOTFOUND ? 0 : code;
    }

    // False: another thread changed the same key, try again.
    static bool Done(int code) {
      if (code == WT_ROLLBACK) return false;
      Check(code);
      return true;
    }

    bool TryCommit() {
      Check(session_->begin_transaction(session_, nullptr));
      int code = 0;
      batch_.ForEach([&](bool is_put, std::string_view key, std::string_view value) {
        if (code == 0) code = is_put ? Insert(key, value) : Remove(key);
      });
      if (code != 0) {
        Check(session_->rollback_transaction(session_, nullptr));
        return Done(code);
      }
      return Done(session_->commit_transaction(session_, nullptr));
    }

    WiredTiger& engine_;
    WT_SESSION* const session_;
    WT_CURSOR* cursor_ = nullptr;
    std::vector<WT_CURSOR*> cursors_;
    lab::Batch batch_;
  };

  class Cursor {
   public:
    Cursor(Session* session, uint64_t) : cursor_(session->TheCursor()) {}
    ~Cursor() { cursor_->reset(cursor_); }
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    bool First() { return Next(); }
    bool Last() { return Prev(); }

    bool Seek(std::string_view key) {
      Session::SetKey(cursor_, key);
      int where = 0;
      const int code = cursor_->search_near(cursor_, &where);
      // It may stand on the key before.
      if (code == 0 && where < 0) return Next();
      return Look(code);
    }

    bool Next() { return Look(cursor_->next(cursor_)); }
    bool Prev() { return Look(cursor_->prev(cursor_)); }
    std::string_view key() const { return ViewOf(key_); }
    std::string_view value() const { return ViewOf(value_); }

   private:
    bool Look(int code) {
      if (code == WT_NOTFOUND) return false;
      Check(code);
      Check(cursor_->get_key(cursor_, &key_));
      Check(cursor_->get_value(cursor_, &value_));
      return true;
    }

    WT_CURSOR* const cursor_;
    WT_ITEM key_{};
    WT_ITEM value_{};
  };

  class Loader {
   public:
    explicit Loader(Session* session) {
      WT_SESSION* const handle = session->session_;
      Check(handle->open_cursor(handle, kTable, nullptr, "bulk", &cursor_));
    }

    ~Loader() {
      if (cursor_ != nullptr) cursor_->close(cursor_);
    }

    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;

    void Put(std::string_view key, std::string_view value) {
      Session::SetKey(cursor_, key);
      const WT_ITEM item = ItemOf(value);
      cursor_->set_value(cursor_, &item);
      Check(cursor_->insert(cursor_));
    }

    void Finish() {
      WT_CURSOR* const cursor = cursor_;
      cursor_ = nullptr;
      Check(cursor->close(cursor));
    }

   private:
    WT_CURSOR* cursor_ = nullptr;
  };

 private:
  static std::string KeyspaceName(uint64_t number) {
    return "table:keyspace-" + std::to_string(number);
  }

  static constexpr uint64_t kMegabyte = 1 << 20;
  static constexpr uint64_t kLeastChunk = kMegabyte / 2;

  uint64_t Cache() const {
    if (settings_.memory() == 0) return 100 * kMegabyte;
    return std::max<uint64_t>(settings_.memory(),
                              IsLsm(settings_) ? Merging() + 3 * kLeastChunk : kMegabyte);
  }

  // Pages are whole multiples of 4 KiB.
  uint64_t LeafSize() const {
    return settings_.block_size != 0 ? (settings_.block_size + 4095) / 4096 * 4096 : 32768;
  }

  // WiredTiger wants room in the cache for three chunks of an LSM tree, and for two leaves and two
  // internal pages of each of 15 that are compacted.
  uint64_t Merging() const { return 15 * 2 * (LeafSize() + 16384); }

  std::string TableConfig() const {
    std::string config = "key_format=u,value_format=u,internal_page_max=16KB";
    config += ",leaf_page_max=" + std::to_string(LeafSize());
    if (settings_.compression) config += ",block_compressor=snappy";
    if (!HasLog(settings_)) {
      config +=
          ",checksum=off,memory_page_max=" + std::to_string(std::max(Cache() * 15 / 16, kMegabyte));
    }
    if (IsLsm(settings_)) {
      const uint64_t chunk = std::min((Cache() - Merging()) / 3, 20 * kMegabyte);
      config += ",type=lsm,lsm=(chunk_size=" + std::to_string(chunk);
      if (settings_.bloom_bits != 0)
        config += ",bloom_bit_count=" + std::to_string(settings_.bloom_bits);
      config += ")";
    }
    return config;
  }

  WT_SESSION* NewSession() const {
    WT_SESSION* session = nullptr;
    Check(connection_->open_session(connection_, nullptr, nullptr, &session));
    return session;
  }

  const lab::Settings settings_;
  WT_CONNECTION* connection_ = nullptr;
  bool synchronous_ = false;
  uint64_t keyspaces_ = 0;
  std::shared_mutex batches_;
};

}  // namespace

int main(int argc, char** argv) { return lab::Main<WiredTiger>(argc, argv); }
