// The order of keys.
#ifndef STORAGE_LEVELDB_INCLUDE_COMPARATOR_H_
#define STORAGE_LEVELDB_INCLUDE_COMPARATOR_H_

#include <string>

#include "leveldb/export.h"

namespace leveldb {

class Slice;

// A total order. Called from any thread, background threads included; it must not throw.
class LEVELDB_EXPORT Comparator {
 public:
  virtual ~Comparator();

  // Less than 0: a before b. 0: the same key. Greater than 0: b before a.
  virtual int Compare(const Slice& a, const Slice& b) const = 0;

  // Recorded in the database. Change it whenever the order changes. Names that begin with
  // "leveldb." are taken.
  virtual const char* Name() const = 0;

  // May replace *start by a shorter key in [*start, limit), given *start < limit. Doing nothing is
  // correct.
  virtual void FindShortestSeparator(std::string* start, const Slice& limit) const = 0;

  // May replace *key by a shorter key that is not less. Doing nothing is correct.
  virtual void FindShortSuccessor(std::string* key) const = 0;
};

// The order of unsigned bytes. Belongs to the library.
LEVELDB_EXPORT const Comparator* BytewiseComparator();

}  // namespace leveldb

#endif
