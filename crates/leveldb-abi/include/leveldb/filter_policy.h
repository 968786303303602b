// Small summaries of keys that spare reads of blocks.
#ifndef STORAGE_LEVELDB_INCLUDE_FILTER_POLICY_H_
#define STORAGE_LEVELDB_INCLUDE_FILTER_POLICY_H_

#include <string>

#include "leveldb/export.h"

namespace leveldb {

class Slice;

// Called from any thread, background threads included; it must not throw.
class LEVELDB_EXPORT FilterPolicy {
 public:
  virtual ~FilterPolicy();

  // Stored with every filter. Change it whenever the encoding changes.
  virtual const char* Name() const = 0;

  // Appends a filter of keys[0..n-1], which may hold duplicates, to *dst. What is there stays as it
  // is.
  virtual void CreateFilter(const Slice* keys, int n, std::string* dst) const = 0;

  // Must be true for a key that the filter was made of; should be false for most others.
  virtual bool KeyMayMatch(const Slice& key, const Slice& filter) const = 0;
};

// LevelDB's bloom filter; 10 bits a key are wrong about once in a hundred times. The caller deletes
// it, after the databases that use it. Not for a comparator that takes different bytes for the same
// key.
LEVELDB_EXPORT const FilterPolicy* NewBloomFilterPolicy(int bits_per_key);

}  // namespace leveldb

#endif
