// Writes a sorted file of plain keys. ABI: 8 bytes.
#ifndef STORAGE_LEVELDB_INCLUDE_TABLE_BUILDER_H_
#define STORAGE_LEVELDB_INCLUDE_TABLE_BUILDER_H_

#include <cstdint>

#include "leveldb/export.h"
#include "leveldb/options.h"
#include "leveldb/status.h"

namespace leveldb {

class BlockBuilder;
class BlockHandle;
class WritableFile;

// One thread at a time. Call Finish or Abandon before destruction.
class LEVELDB_EXPORT TableBuilder {
 public:
  // Neither syncs nor closes `file`, which the caller keeps.
  TableBuilder(const Options& options, WritableFile* file);

  TableBuilder(const TableBuilder&) = delete;
  TableBuilder& operator=(const TableBuilder&) = delete;

  ~TableBuilder();

  // Sizes and compression for what comes next. InvalidArgument if the comparator differs.
  Status ChangeOptions(const Options& options);

  // `key` is greater than every key before it.
  void Add(const Slice& key, const Slice& value);

  // Ends the block, so that the next entry is in a block of its own.
  void Flush();

  Status status() const;

  Status Finish();
  void Abandon();

  uint64_t NumEntries() const;

  // The bytes of the file so far; all of them after Finish.
  uint64_t FileSize() const;

 private:
  bool ok() const { return status().ok(); }
  void WriteBlock(BlockBuilder* block, BlockHandle* handle);
  void WriteRawBlock(const Slice& data, CompressionType, BlockHandle* handle);

  struct Rep;
  Rep* rep_;
};

}  // namespace leveldb

#endif
