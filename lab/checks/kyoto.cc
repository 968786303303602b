// An independent check of the lab's figures for Kyoto Cabinet's TreeDB, tuned as in LevelDB's
// comparison of 2011.

#include <kcdbext.h>
#include <kcpolydb.h>

#include "check.h"

namespace {

class Store {
 public:
  Store(const std::string& directory, uint64_t cache, uint64_t write_buffer) {
    using kyotocabinet::TreeDB;
    db_.tune_options(TreeDB::TSMALL | TreeDB::TLINEAR | TreeDB::TCOMPRESS);
    db_.tune_compressor(&compressor_);
    db_.tune_page_cache(static_cast<int64_t>(cache + write_buffer));
    db_.tune_map(int64_t{256} << 20);
    Check(db_.open(directory + "/check.kct", TreeDB::OWRITER | TreeDB::OCREATE));
  }

  ~Store() { db_.close(); }

  void Put(const std::string& key, std::string_view value) {
    Check(db_.set(key.data(), key.size(), value.data(), value.size()));
  }

  bool Get(const std::string& key, std::string* value) { return db_.get(key, value); }
  void Rest() { Check(db_.synchronize(false)); }

  template <typename Visit>
  void Scan(const Visit& visit) {
    class Look : public kyotocabinet::DB::Visitor {
     public:
      explicit Look(const Visit& visit) : visit_(visit) {}

     private:
      const char* visit_full(const char*, size_t key, const char*, size_t value,
                             size_t*) override {
        visit_(key, value);
        return NOP;
      }

      const Visit& visit_;
    } look(visit);
    std::unique_ptr<kyotocabinet::DB::Cursor> cursor(db_.cursor());
    if (!cursor->jump()) return;
    while (cursor->accept(&look, false, true)) {}
  }

 private:
  void Check(bool right) {
    if (!right) check::Fail(db_.error().message());
  }

  kyotocabinet::LZOCompressor<kyotocabinet::LZO::RAW> compressor_;
  kyotocabinet::TreeDB db_;
};

}  // namespace

int main(int argc, char** argv) { return check::Main<Store>(argc, argv); }
