// An independent check of the lab's figures for Tkrzw's TreeDBM.

#include <algorithm>

#include <tkrzw_dbm_tree.h>

#include "check.h"

namespace {

void Check(const tkrzw::Status& status) {
  if (!status.IsOK()) check::Fail(tkrzw::ToString(status));
}

class Store {
 public:
  Store(const std::string& directory, uint64_t cache, uint64_t write_buffer) {
    tkrzw::TreeDBM::TuningParameters parameters;
    // Its cache is counted in pages, of 8,130 bytes by default.
    parameters.max_cached_pages =
        static_cast<int32_t>(std::max<uint64_t>((cache + write_buffer) / 8130, 64));
    parameters.record_comp_mode = tkrzw::HashDBM::RECORD_COMP_LZ4;
    Check(db_.OpenAdvanced(directory + "/check.tkt", true, tkrzw::File::OPEN_DEFAULT, parameters));
  }

  ~Store() { db_.Close(); }

  void Put(const std::string& key, std::string_view value) { Check(db_.Set(key, value)); }
  bool Get(const std::string& key, std::string* value) { return db_.Get(key, value).IsOK(); }
  void Rest() { Check(db_.Synchronize(false)); }

  template <typename Visit>
  void Scan(const Visit& visit) {
    std::unique_ptr<tkrzw::DBM::Iterator> iterator(db_.MakeIterator());
    Check(iterator->First());
    std::string key, value;
    while (iterator->Get(&key, &value).IsOK()) {
      visit(key.size(), value.size());
      iterator->Next();
    }
  }

 private:
  tkrzw::TreeDBM db_;
};

}  // namespace

int main(int argc, char** argv) { return check::Main<Store>(argc, argv); }
