// Tkrzw's TreeDBM.

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tkrzw_dbm_hash.h>
#include <tkrzw_dbm_tree.h>
#include <tkrzw_lib_common.h>

#include "../common/driver.h"

namespace {

void Check(const tkrzw::Status& status) {
  if (!status.IsOK()) throw lab::Failure("Tkrzw: " + std::string(tkrzw::ToString(status)));
}

// Whether a record was found.
bool Found(const tkrzw::Status& status) {
  if (status == tkrzw::Status::NOT_FOUND_ERROR) return false;
  Check(status);
  return true;
}

class Tkrzw {
 public:
  static lab::Description Describe(const lab::Settings&) {
    lab::Description description;
    description.engine = "tkrzw";
    description.title = "Tkrzw TreeDBM";
    description.version = tkrzw::PACKAGE_VERSION;
    description.variants = {{"", "Tkrzw TreeDBM"}};
    description.asynchronous =
        "nothing: changed pages stay in the process, so a killed process loses acknowledged writes";
    description.synchronous =
        "Synchronize(true): after every write or batch all changed pages are written and forced to "
        "the disk";
    description.settings =
        "cache_size and write_buffer_size together are its cache, as max_cached_pages of the size "
        "of a page (default 10,000 pages), at least 64; block_size is max_page_size (default 8,130 "
        "bytes); compression is LZ4 of whole pages instead of snappy; max_open_files and "
        "bloom_bits have no meaning. The file is mapped (MemoryMapParallelFile) and updated in "
        "place; everything else is Tkrzw's default. A batch is ProcessMulti. compact is Rebuild, "
        "waitcompact writes all changed pages to the operating system (Synchronize)";
    description.limits = {
        "asynchronous writes do not reach the operating system: not to be ranked with the others'",
        "a batch is seen as a whole by other threads, but a crash may leave a part of it",
        "its cache counts pages: with values larger than a page it holds more than cache_size",
        "Last is wrong after a database was opened again (a fault of 1.0.25), so a backward scan "
        "begins with seeks for the greatest key"};
    description.unsupported = {
        {"bulkload", "TreeDBM has no way to load ordered data other than its puts"}};
    return description;
  }

  explicit Tkrzw(const lab::Settings& settings) : settings_(settings) {}

  void Open(const lab::Use& use) {
    tkrzw::TreeDBM::TuningParameters parameters;
    if (settings_.block_size != 0)
      parameters.max_page_size = static_cast<int32_t>(settings_.block_size);
    if (settings_.memory() != 0) {
      const uint64_t page = settings_.block_size != 0 ? settings_.block_size : kPageSize;
      parameters.max_cached_pages =
          static_cast<int32_t>(std::clamp<uint64_t>(settings_.memory() / page, 64, INT32_MAX));
    }
    parameters.record_comp_mode = settings_.compression ? tkrzw::HashDBM::RECORD_COMP_LZ4
                                                        : tkrzw::HashDBM::RECORD_COMP_NONE;
    db_ = std::make_unique<tkrzw::TreeDBM>();
    Check(db_->OpenAdvanced(settings_.db + "/bench.tkt", true, tkrzw::File::OPEN_DEFAULT,
                            parameters));
    Adapt(use);
  }

  void Adapt(const lab::Use& use) { synchronous_ = use.synchronous; }

  void Close() {
    Check(db_->Close());
    db_.reset();
  }

  void Destroy() {}
  void Compact() { Check(db_->Rebuild()); }
  void WaitCompact() { Check(db_->Synchronize(false)); }

  class Session {
   public:
    explicit Session(Tkrzw* engine) : db_(*engine->db_), synchronous_(engine->synchronous_) {}

    void Put(std::string_view key, std::string_view value) {
      Check(db_.Set(key, value));
      Written();
    }

    void Delete(std::string_view key) {
      Found(db_.Remove(key));
      Written();
    }

    bool Get(std::string_view key, std::string* value) { return Found(db_.Get(key, value)); }

    void BatchPut(std::string_view key, std::string_view value) {
      changes_.emplace_back(key, value);
    }

    void BatchDelete(std::string_view key) {
      changes_.emplace_back(key, tkrzw::DBM::RecordProcessor::REMOVE);
    }

    void Commit() {
      std::vector<std::pair<std::string_view, tkrzw::DBM::RecordProcessor*>> pairs;
      pairs.reserve(changes_.size());
      for (Change& change : changes_) pairs.emplace_back(change.key, &change);
      Check(db_.ProcessMulti(pairs, true));
      changes_.clear();
      Written();
    }

   private:
    friend class Tkrzw;

    // A change of a batch: keeps the key, and the value, which belongs to the driver and does not
    // change.
    class Change : public tkrzw::DBM::RecordProcessor {
     public:
      Change(std::string_view key, std::string_view value) : key(key), value_(value) {}

      std::string_view ProcessFull(std::string_view, std::string_view) override { return value_; }
      std::string_view ProcessEmpty(std::string_view) override { return value_; }

      const std::string key;

     private:
      const std::string_view value_;
    };

    void Written() {
      if (synchronous_) Check(db_.Synchronize(true));
    }

    tkrzw::TreeDBM& db_;
    const bool synchronous_;
    std::list<Change> changes_;
  };

  class Cursor {
   public:
    Cursor(Session* session, uint64_t) : iterator_(session->db_.MakeIterator()) {}

    bool First() { return Look(iterator_->First()); }

    // Tkrzw 1.0.25 takes the first page for the last one in a database that was opened again, so
    // the greatest key is searched for, byte by byte. Its steps backwards are right.
    bool Last() {
      std::string greatest;
      while (Seek(greatest + '\0')) {
        // The greatest byte that a key goes on with.
        int least = 0;
        for (int above = 256; above - least > 1;) {
          const int middle = (least + above) / 2;
          (Seek(greatest + static_cast<char>(middle)) ? least : above) = middle;
        }
        greatest += static_cast<char>(least);
      }
      return Seek(greatest);
    }

    bool Seek(std::string_view key) { return Look(iterator_->Jump(key)); }
    bool Next() { return Look(iterator_->Next()); }
    bool Prev() { return Look(iterator_->Previous()); }
    std::string_view key() const { return key_; }
    std::string_view value() const { return value_; }

   private:
    // After a step: whether there is a record.
    bool Look(const tkrzw::Status& step) {
      return Found(step) && Found(iterator_->Get(&key_, &value_));
    }

    std::unique_ptr<tkrzw::DBM::Iterator> iterator_;
    std::string key_;
    std::string value_;
  };

  using Loader = lab::NoLoader<Session>;

 private:
  // The default.
  static constexpr uint64_t kPageSize = tkrzw::TreeDBM::DEFAULT_MAX_PAGE_SIZE;

  const lab::Settings settings_;
  std::unique_ptr<tkrzw::TreeDBM> db_;
  bool synchronous_ = false;
};

}  // namespace

int main(int argc, char** argv) { return lab::Main<Tkrzw>(argc, argv); }
