// A std::map with a lock: the expected results of every engine in the self-test, and what the
// driver itself costs. It has no engine.toml, so that it is in no report. To build it: c++
// -std=c++20 -O2 bench.cc -pthread

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "../common/batch.h"
#include "../common/driver.h"

namespace {

class Reference {
 public:
  static lab::Description Describe(const lab::Settings&) {
    lab::Description description;
    description.engine = "reference";
    description.title = "std::map";
    description.version = "1";
    description.variants = {{"", "std::map"}};
    description.asynchronous = "nothing: everything is in memory";
    description.synchronous = "nothing: everything is in memory";
    description.settings = "none of the settings has a meaning";
    description.limits = {"keeps nothing when the process ends"};
    return description;
  }

  explicit Reference(const lab::Settings&) {}

  void Open(const lab::Use&) {}
  void Adapt(const lab::Use&) {}
  void Close() {}
  void Destroy() {
    map_.clear();
    keyspaces_.clear();
  }
  void Compact() {}
  void WaitCompact() {}
  // None of them is a tree's: level 0 has no files, level 1 one with as many bytes as there are keys.
  std::vector<lab::Level> Levels() const { return {{0, 0}, {1, map_.size()}, {0, 0}}; }
  void OpenKeyspaces(uint64_t count) { keyspaces_.resize(count); }

 private:
  using Map = std::map<std::string, std::string, std::less<>>;

  void Put(std::string_view key, std::string_view value) {
    const auto it = map_.lower_bound(key);
    if (it != map_.end() && it->first == key) {
      it->second = value;
    } else {
      map_.emplace_hint(it, key, value);
    }
  }

  void Delete(std::string_view key) {
    if (const auto it = map_.find(key); it != map_.end()) map_.erase(it);
  }

  std::shared_mutex mutex_;
  Map map_;
  std::vector<Map> keyspaces_;

 public:
  class Session {
   public:
    explicit Session(Reference* engine) : engine_(*engine) {}

    void Put(std::string_view key, std::string_view value) {
      std::unique_lock<std::shared_mutex> lock(engine_.mutex_);
      engine_.Put(key, value);
    }

    void Delete(std::string_view key) {
      std::unique_lock<std::shared_mutex> lock(engine_.mutex_);
      engine_.Delete(key);
    }

    bool Get(std::string_view key, std::string* value) {
      std::shared_lock<std::shared_mutex> lock(engine_.mutex_);
      const auto it = engine_.map_.find(key);
      if (it == engine_.map_.end()) return false;
      *value = it->second;
      return true;
    }

    void PutIn(uint64_t keyspace, std::string_view key, std::string_view value) {
      std::unique_lock<std::shared_mutex> lock(engine_.mutex_);
      engine_.keyspaces_[keyspace].insert_or_assign(std::string(key), value);
    }

    bool GetIn(uint64_t keyspace, std::string_view key, std::string* value) {
      std::shared_lock<std::shared_mutex> lock(engine_.mutex_);
      const Map& map = engine_.keyspaces_[keyspace];
      const auto it = map.find(key);
      if (it == map.end()) return false;
      *value = it->second;
      return true;
    }

    void BatchPut(std::string_view key, std::string_view value) { batch_.Put(key, value); }
    void BatchDelete(std::string_view key) { batch_.Delete(key); }

    void Commit() {
      std::unique_lock<std::shared_mutex> lock(engine_.mutex_);
      batch_.ForEach([&](bool is_put, std::string_view key, std::string_view value) {
        is_put ? engine_.Put(key, value) : engine_.Delete(key);
      });
      batch_.Clear();
    }

   private:
    friend class Reference;
    Reference& engine_;
    lab::Batch batch_;
  };

  // Keeps writers out as long as it lives.
  class Cursor {
   public:
    Cursor(Session* session, uint64_t)
        : map_(session->engine_.map_), lock_(session->engine_.mutex_), at_(map_.end()) {}

    bool First() { return Stand(map_.begin()); }
    bool Last() { return Stand(map_.empty() ? map_.end() : std::prev(map_.end())); }
    bool Seek(std::string_view key) { return Stand(map_.lower_bound(key)); }
    bool Next() { return Stand(std::next(at_)); }
    bool Prev() { return Stand(at_ == map_.begin() ? map_.end() : std::prev(at_)); }
    std::string_view key() const { return at_->first; }
    std::string_view value() const { return at_->second; }

   private:
    bool Stand(Map::const_iterator at) {
      at_ = at;
      return at_ != map_.end();
    }

    const Map& map_;
    std::shared_lock<std::shared_mutex> lock_;
    Map::const_iterator at_;
  };

  class Loader {
   public:
    explicit Loader(Session* session) : session_(*session) {}
    void Put(std::string_view key, std::string_view value) { session_.Put(key, value); }
    void Finish() {}

   private:
    Session& session_;
  };
};

}  // namespace

int main(int argc, char** argv) { return lab::Main<Reference>(argc, argv); }
