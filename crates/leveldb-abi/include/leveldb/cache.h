// A map of bounded size from keys to values. ABI: 16 bytes.
#ifndef STORAGE_LEVELDB_INCLUDE_CACHE_H_
#define STORAGE_LEVELDB_INCLUDE_CACHE_H_

#include <cstdint>

#include "leveldb/export.h"
#include "leveldb/slice.h"

namespace leveldb {

class LEVELDB_EXPORT Cache;

// A cache that drops what was used least recently.
LEVELDB_EXPORT Cache* NewLRUCache(size_t capacity);

// Any number of threads at once.
class LEVELDB_EXPORT Cache {
 public:
  Cache() = default;

  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Calls the deleter of every entry.
  virtual ~Cache();

  // An entry in use.
  struct Handle {};

  // Adds an entry that counts for `charge`. The handle is to be released; once no caller uses the
  // entry and it is out of the cache, `deleter` gets key and value.
  virtual Handle* Insert(const Slice& key, void* value, size_t charge,
                         void (*deleter)(const Slice& key, void* value)) = 0;

  // Null, or a handle to be released.
  virtual Handle* Lookup(const Slice& key) = 0;

  virtual void Release(Handle* handle) = 0;
  virtual void* Value(Handle* handle) = 0;
  virtual void Erase(const Slice& key) = 0;

  // A number that this cache has not returned before, for sharing it by prefixes of keys.
  virtual uint64_t NewId() = 0;

  // Drops every entry that is not in use.
  virtual void Prune() {}

  virtual size_t TotalCharge() const = 0;

 private:
  struct Rep;
  Rep* rep_;
};

}  // namespace leveldb

#endif
