// NewLRUCache: a map with LevelDB's sharding, so that a program sees the same evictions; and the
// engine's block cache of the same capacity behind it, for when it is passed as
// Options::block_cache. And how the engine keeps blocks in a cache of a program's own kind.
#include "leveldb/cache.h"

#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "support.h"

namespace leveldb {

Cache::~Cache() = default;

namespace {

// LevelDB's hash of short byte strings with seed 0: it decides which shard a key is in.
uint32_t Hash(const Slice& key) {
  constexpr uint32_t kMultiplier = 0xc6a4a793;
  const unsigned char* data = reinterpret_cast<const unsigned char*>(key.data());
  size_t left = key.size();
  uint32_t hash = static_cast<uint32_t>(left * kMultiplier);
  for (; left >= 4; data += 4, left -= 4) {
    hash += data[0] | data[1] << 8 | data[2] << 16 | static_cast<uint32_t>(data[3]) << 24;
    hash *= kMultiplier;
    hash ^= hash >> 16;
  }
  if (left > 0) {
    for (size_t at = 0; at < left; at++) hash += static_cast<uint32_t>(data[at]) << (8 * at);
    hash *= kMultiplier;
    hash ^= hash >> 24;
  }
  return hash;
}

using Deleter = void (*)(const Slice& key, void* value);

struct Entry : Cache::Handle {
  std::string key;
  void* value;
  size_t charge;
  Deleter deleter;
  size_t shard;
  // One for each handle out, and one while in the cache.
  size_t references;
  bool in_cache;
  // Its place among the entries that only the cache holds.
  bool idle;
  std::list<Entry*>::iterator place;
};

// One of several parts, each with its own lock and its own share of the capacity.
class Shard {
 public:
  void set_capacity(size_t capacity) { capacity_ = capacity; }

  // Entries that are still in use are their users' mistake, and stay.
  ~Shard() {
    for (Entry* entry : idle_) Free(entry);
  }

  Entry* Insert(Entry* entry) {
    std::list<Entry*> dead;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      entry->references = 1;
      entry->idle = false;
      entry->in_cache = capacity_ > 0;
      if (entry->in_cache) {
        entry->references++;
        usage_ += entry->charge;
        auto [at, fresh] = entries_.try_emplace(entry->key, entry);
        if (!fresh) {
          Entry* old = at->second;
          // The map's key leads into the entry that it belongs to.
          entries_.erase(at);
          entries_.emplace(entry->key, entry);
          Leave(old, &dead);
        }
      }
      while (usage_ > capacity_ && !idle_.empty()) {
        Entry* oldest = idle_.front();
        entries_.erase(oldest->key);
        Leave(oldest, &dead);
      }
    }
    FreeAll(dead);
    return entry;
  }

  Entry* Lookup(const Slice& key) {
    std::lock_guard<std::mutex> guard(mutex_);
    auto at = entries_.find(std::string_view(key.data(), key.size()));
    if (at == entries_.end()) return nullptr;
    Entry* entry = at->second;
    if (entry->idle) {
      idle_.erase(entry->place);
      entry->idle = false;
    }
    entry->references++;
    return entry;
  }

  void Release(Entry* entry) {
    std::list<Entry*> dead;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      Unreference(entry, &dead);
    }
    FreeAll(dead);
  }

  void Erase(const Slice& key) {
    std::list<Entry*> dead;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      auto at = entries_.find(std::string_view(key.data(), key.size()));
      if (at == entries_.end()) return;
      Entry* entry = at->second;
      entries_.erase(at);
      Leave(entry, &dead);
    }
    FreeAll(dead);
  }

  void Prune() {
    std::list<Entry*> dead;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      while (!idle_.empty()) {
        Entry* entry = idle_.front();
        entries_.erase(entry->key);
        Leave(entry, &dead);
      }
    }
    FreeAll(dead);
  }

  size_t usage() const {
    std::lock_guard<std::mutex> guard(mutex_);
    return usage_;
  }

 private:
  // The entry is out of the map already.
  void Leave(Entry* entry, std::list<Entry*>* dead) {
    entry->in_cache = false;
    usage_ -= entry->charge;
    if (entry->idle) {
      idle_.erase(entry->place);
      entry->idle = false;
    }
    Unreference(entry, dead);
  }

  void Unreference(Entry* entry, std::list<Entry*>* dead) {
    if (--entry->references == 0) {
      dead->push_back(entry);
    } else if (entry->in_cache && entry->references == 1) {
      entry->place = idle_.insert(idle_.end(), entry);
      entry->idle = true;
    }
  }

  static void Free(Entry* entry) {
    entry->deleter(entry->key, entry->value);
    delete entry;
  }

  static void FreeAll(const std::list<Entry*>& dead) {
    for (Entry* entry : dead) Free(entry);
  }

  size_t capacity_ = 0;
  mutable std::mutex mutex_;
  size_t usage_ = 0;
  // Keys lead into the entries.
  std::unordered_map<std::string_view, Entry*> entries_;
  // Least recently used first.
  std::list<Entry*> idle_;
};

class ShardedLRUCache final : public Cache {
 public:
  explicit ShardedLRUCache(size_t capacity) : blocks_(shim_cache_new(capacity)) {
    for (Shard& shard : shards_) shard.set_capacity((capacity + kShards - 1) / kShards);
  }
  ~ShardedLRUCache() override { shim_cache_release(blocks_); }

  Handle* Insert(const Slice& key, void* value, size_t charge, Deleter deleter) override {
    Entry* entry = new Entry;
    entry->key = key.ToString();
    entry->value = value;
    entry->charge = charge;
    entry->deleter = deleter;
    entry->shard = Hash(key) >> (32 - kShardBits);
    return shards_[entry->shard].Insert(entry);
  }

  Handle* Lookup(const Slice& key) override {
    return shards_[Hash(key) >> (32 - kShardBits)].Lookup(key);
  }

  void Release(Handle* handle) override {
    Entry* entry = static_cast<Entry*>(handle);
    shards_[entry->shard].Release(entry);
  }

  void* Value(Handle* handle) override { return static_cast<Entry*>(handle)->value; }

  void Erase(const Slice& key) override { shards_[Hash(key) >> (32 - kShardBits)].Erase(key); }

  uint64_t NewId() override { return ++last_id_; }

  void Prune() override {
    for (Shard& shard : shards_) shard.Prune();
    shim_cache_prune(blocks_);
  }

  size_t TotalCharge() const override {
    size_t total = shim_cache_used(blocks_);
    for (const Shard& shard : shards_) total += shard.usage();
    return total;
  }

  const shim_cache* blocks() const { return blocks_; }

 private:
  static constexpr int kShardBits = 4;
  static constexpr size_t kShards = 1 << kShardBits;

  shim_cache* const blocks_;
  Shard shards_[kShards];
  std::atomic<uint64_t> last_id_{0};
};

}  // namespace

Cache* NewLRUCache(size_t capacity) { return new ShardedLRUCache(capacity); }

const shim_cache* EngineCache(Cache* cache) {
  static const void* const kOurs = [] {
    const ShardedLRUCache probe(0);
    return TableOf(&probe);
  }();
  if (cache == nullptr || TableOf(cache) != kOurs) return nullptr;
  return static_cast<const ShardedLRUCache*>(cache)->blocks();
}

namespace {

Cache* AsCache(void* cache) { return static_cast<Cache*>(cache); }

void DeleteBlock(const Slice&, void* block) { shim_block_release(static_cast<shim_block*>(block)); }

uint64_t NewId(void* cache) noexcept { return AsCache(cache)->NewId(); }

void* Lookup(void* cache, shim_bytes key) noexcept { return AsCache(cache)->Lookup(AsSlice(key)); }

void* Insert(void* cache, shim_bytes key, shim_block* block, size_t charge) noexcept {
  return AsCache(cache)->Insert(AsSlice(key), block, charge, DeleteBlock);
}

const shim_block* Value(void* cache, void* handle) noexcept {
  return static_cast<const shim_block*>(AsCache(cache)->Value(static_cast<Cache::Handle*>(handle)));
}

void Release(void* cache, void* handle) noexcept {
  AsCache(cache)->Release(static_cast<Cache::Handle*>(handle));
}

size_t TotalCharge(const void* cache) noexcept {
  return static_cast<const Cache*>(cache)->TotalCharge();
}

}  // namespace

shim_custom_cache EngineCustomCache(Cache* cache) {
  if (cache == nullptr || EngineCache(cache) != nullptr) return {};
  return {cache, NewId, Lookup, Insert, Value, Release, TotalCharge};
}

}  // namespace leveldb
