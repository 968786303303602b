// A program in C++ as others write it: built against an installed library by pkg-config and by
// CMake.
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <iostream>
#include <memory>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::unique_ptr<const leveldb::FilterPolicy> filter(leveldb::NewBloomFilterPolicy(10));
  std::unique_ptr<leveldb::Cache> cache(leveldb::NewLRUCache(1 << 20));
  leveldb::Options options;
  options.create_if_missing = true;
  options.filter_policy = filter.get();
  options.block_cache = cache.get();
  leveldb::DB* opened = nullptr;
  leveldb::Status status = leveldb::DB::Open(options, arguments[1], &opened);
  std::unique_ptr<leveldb::DB> db(opened);
  leveldb::WriteBatch batch;
  batch.Put("key", "from C++");
  std::string value;
  if (status.ok()) status = db->Write(leveldb::WriteOptions(), &batch);
  if (status.ok()) status = db->Get(leveldb::ReadOptions(), "key", &value);
  if (!status.ok()) {
    std::cerr << status.ToString() << "\n";
    return 1;
  }
  std::cout << value << " " << leveldb::kMajorVersion << "." << leveldb::kMinorVersion << "\n";
  return 0;
}
