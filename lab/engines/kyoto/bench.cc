// Kyoto Cabinet's TreeDB.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <kchashdb.h>

#include "../common/driver.h"

namespace {

namespace kc = kyotocabinet;

class Kyoto {
 public:
  static lab::Description Describe(const lab::Settings&) {
    lab::Description description;
    description.engine = "kyoto";
    description.title = "Kyoto TreeDB";
    description.version = kc::VERSION;
    description.variants = {{"", "Kyoto TreeDB"}};
    description.asynchronous =
        "nothing: changed pages stay in the process, so a killed process loses acknowledged writes";
    description.synchronous =
        "OAUTOSYNC: after every write all changed pages are written and forced to the disk";
    description.settings =
        "cache_size and write_buffer_size together are the page cache (default 64 MiB); block_size "
        "is the page size "
        "(default 8 KiB); compression is LZO instead of snappy; max_open_files and bloom_bits have "
        "no meaning. Options "
        "TSMALL and TLINEAR and a map of 256 MiB, as in LevelDB's comparison of 2011; a batch is a "
        "transaction. "
        "compact is a defragmentation, waitcompact writes all changed pages to the operating "
        "system";
    description.limits = {
        "asynchronous writes do not reach the operating system: not to be ranked with the others'",
        "a transaction is for the whole database: batches of several threads wait for each other"};
    description.unsupported = {
        {"bulkload", "TreeDB has no way to load ordered data other than its puts"}};
    return description;
  }

  explicit Kyoto(const lab::Settings& settings) : settings_(settings) {}

  void Open(const lab::Use& use) {
    synchronous_ = use.synchronous;
    db_ = std::make_unique<kc::TreeDB>();
    int options = kc::TreeDB::TSMALL | kc::TreeDB::TLINEAR;
    if (settings_.compression) {
      options |= kc::TreeDB::TCOMPRESS;
      Check(db_->tune_compressor(&compressor_));
    }
    Check(db_->tune_options(static_cast<int8_t>(options)));
    if (settings_.memory() != 0)
      Check(db_->tune_page_cache(static_cast<int64_t>(settings_.memory())));
    if (settings_.block_size != 0)
      Check(db_->tune_page(static_cast<int32_t>(settings_.block_size)));
    Check(db_->tune_map(int64_t{256} << 20));
    uint32_t mode = kc::TreeDB::OWRITER | kc::TreeDB::OCREATE;
    if (synchronous_) mode |= kc::TreeDB::OAUTOSYNC;
    Check(db_->open(settings_.db + "/bench.kct", mode));
  }

  // Whether writes are synchronous is said when the database is opened.
  void Adapt(const lab::Use& use) {
    if (use.synchronous == synchronous_) return;
    Close();
    Open(use);
  }

  void Close() {
    Check(db_->close());
    db_.reset();
  }

  void Destroy() {}
  void Compact() { Check(db_->defrag(0)); }
  void WaitCompact() { Check(db_->synchronize(false)); }

  class Session {
   public:
    explicit Session(Kyoto* engine) : engine_(*engine), db_(*engine->db_) {}

    void Put(std::string_view key, std::string_view value) {
      engine_.Check(db_.set(key.data(), key.size(), value.data(), value.size()));
    }

    void Delete(std::string_view key) {
      if (!db_.remove(key.data(), key.size())) engine_.CheckMissing();
    }

    bool Get(std::string_view key, std::string* value) {
      class Copy : public kc::DB::Visitor {
       public:
        explicit Copy(std::string* value) : value_(value) {}
        bool found() const { return found_; }

       private:
        const char* visit_full(const char*, size_t, const char* value, size_t size,
                               size_t*) override {
          value_->assign(value, size);
          found_ = true;
          return NOP;
        }

        std::string* value_;
        bool found_ = false;
      } copy(value);
      engine_.Check(db_.accept(key.data(), key.size(), &copy, false));
      return copy.found();
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
      if (in_batch_) engine_.Check(db_.end_transaction(true));
      in_batch_ = false;
    }

   private:
    friend class Kyoto;

    void Begin() {
      if (!in_batch_) engine_.Check(db_.begin_transaction(engine_.synchronous_));
      in_batch_ = true;
    }

    Kyoto& engine_;
    kc::TreeDB& db_;
    bool in_batch_ = false;
  };

  class Cursor : private kc::DB::Visitor {
   public:
    Cursor(Session* session, uint64_t)
        : engine_(session->engine_), cursor_(session->db_.cursor()) {}

    bool First() { return cursor_->jump() ? Look(true) : Missing(); }
    bool Last() { return cursor_->jump_back() ? Look(false) : Missing(); }
    bool Seek(std::string_view key) {
      return cursor_->jump(key.data(), key.size()) ? Look(true) : Missing();
    }
    bool Next() {
      if (!ahead_ && !cursor_->step()) return Missing();
      return Look(true);
    }
    bool Prev() {
      // Ahead of the last record the cursor is nowhere.
      if (ahead_ && !cursor_->step_back() && !cursor_->jump_back()) return Missing();
      ahead_ = false;
      return cursor_->step_back() ? Look(false) : Missing();
    }
    std::string_view key() const { return key_; }
    std::string_view value() const { return value_; }

   private:
    const char* visit_full(const char* key, size_t key_size, const char* value, size_t value_size,
                           size_t*) override {
      key_.assign(key, key_size);
      value_.assign(value, value_size);
      return NOP;
    }

    // Reads the record here. Forward the cursor goes on to the next one in the same call, which
    // costs less than a call of its own.
    bool Look(bool forward) {
      ahead_ = forward;
      return cursor_->accept(this, false, forward) ? true : Missing();
    }

    bool Missing() {
      engine_.CheckMissing();
      return false;
    }

    Kyoto& engine_;
    std::unique_ptr<kc::TreeDB::Cursor> cursor_;
    // Whether the cursor stands at the record behind the one that was read.
    bool ahead_ = false;
    std::string key_;
    std::string value_;
  };

  using Loader = lab::NoLoader<Session>;

 private:
  void Check(bool done) const {
    if (!done) throw Problem();
  }

  // After a call that failed because there is no such record, or for another reason.
  void CheckMissing() const {
    if (db_->error() != kc::TreeDB::Error::NOREC) throw Problem();
  }

  lab::Failure Problem() const {
    const kc::TreeDB::Error error = db_->error();
    return lab::Failure(std::string("Kyoto Cabinet: ") + error.name() + ": " + error.message());
  }

  const lab::Settings settings_;
  kc::LZOCompressor<kc::LZO::RAW> compressor_;
  std::unique_ptr<kc::TreeDB> db_;
  bool synchronous_ = false;
};

}  // namespace

int main(int argc, char** argv) { return lab::Main<Kyoto>(argc, argv); }
