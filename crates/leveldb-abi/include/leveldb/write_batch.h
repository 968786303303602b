// Operations that take effect together. ABI: one std::string: 8 bytes sequence number, 4 bytes
// number of operations, then for each operation its kind (1 byte), its key and, for a put, its
// value, each with its length as a varint.
#ifndef STORAGE_LEVELDB_INCLUDE_WRITE_BATCH_H_
#define STORAGE_LEVELDB_INCLUDE_WRITE_BATCH_H_

#include <string>

#include "leveldb/export.h"
#include "leveldb/status.h"

namespace leveldb {

class Slice;

class LEVELDB_EXPORT WriteBatch {
 public:
  // Is told of operations by Iterate.
  class LEVELDB_EXPORT Handler {
   public:
    virtual ~Handler();
    virtual void Put(const Slice& key, const Slice& value) = 0;
    virtual void Delete(const Slice& key) = 0;
  };

  WriteBatch();
  WriteBatch(const WriteBatch&) = default;
  WriteBatch& operator=(const WriteBatch&) = default;
  ~WriteBatch();

  // A key and value of 4 GiB less 8 MiB or more together make the write of the batch fail.
  void Put(const Slice& key, const Slice& value);
  void Delete(const Slice& key);
  void Clear();

  // The bytes that the batch takes in the log.
  size_t ApproximateSize() const;

  // Adds the operations of source behind those of this batch.
  void Append(const WriteBatch& source);

  Status Iterate(Handler* handler) const;

 private:
  friend class WriteBatchInternal;

  std::string rep_;
};

}  // namespace leveldb

#endif
