// Stands in for LevelDB's private DBImpl, to which its tests cast a DB. Whatever library the DB is
// of, these reach it through the public interface.
#ifndef TERRACE_UPSTREAM_DB_IMPL_H_
#define TERRACE_UPSTREAM_DB_IMPL_H_

#include <cstdint>

#include "db/dbformat.h"
#include "db/log_writer.h"
#include "db/snapshot.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "port/port.h"
#include "port/thread_annotations.h"

namespace leveldb {

class DBImpl : public DB {
 public:
  // A range behind every key: the memtable is flushed, and nothing is compacted.
  Status TEST_CompactMemTable() {
    const std::string end(64, '\xff');
    const Slice range(end);
    CompactRange(&range, &range);
    return Status::OK();
  }

  // Of all levels: the public interface does not name one.
  void TEST_CompactRange(int, const Slice* begin, const Slice* end) { CompactRange(begin, end); }

  // Internal keys are out of reach.
  Iterator* TEST_NewInternalIterator() {
    return NewErrorIterator(Status::NotSupported("internal keys"));
  }

  int64_t TEST_MaxNextLevelOverlappingBytes() { return 0; }
};

}  // namespace leveldb

#endif  // TERRACE_UPSTREAM_DB_IMPL_H_
