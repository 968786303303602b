// The layouts that programs bake in. Compiled against Debian's headers and against ours; it need
// not run.
#include <leveldb/cache.h>
#include <leveldb/comparator.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/slice.h>
#include <leveldb/status.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>
#include <leveldb/write_batch.h>

#include <cstddef>

#define FIELD(field, at) static_assert(offsetof(leveldb::Options, field) == at, #field)
FIELD(comparator, 0);
FIELD(create_if_missing, 8);
FIELD(error_if_exists, 9);
FIELD(paranoid_checks, 10);
FIELD(env, 16);
FIELD(info_log, 24);
FIELD(write_buffer_size, 32);
FIELD(max_open_files, 40);
FIELD(block_cache, 48);
FIELD(block_size, 56);
FIELD(block_restart_interval, 64);
FIELD(max_file_size, 72);
FIELD(compression, 80);
FIELD(reuse_logs, 84);
FIELD(filter_policy, 88);
static_assert(offsetof(leveldb::ReadOptions, verify_checksums) == 0, "");
static_assert(offsetof(leveldb::ReadOptions, fill_cache) == 1, "");
static_assert(offsetof(leveldb::ReadOptions, snapshot) == 8, "");
static_assert(offsetof(leveldb::WriteOptions, sync) == 0, "");
static_assert(offsetof(leveldb::Range, limit) == 16, "");

#define SIZE(type, size) \
  static_assert(sizeof(leveldb::type) == size && alignof(leveldb::type) <= 8, #type)
SIZE(Options, 96);
SIZE(ReadOptions, 16);
SIZE(WriteOptions, 1);
SIZE(Range, 32);
SIZE(Slice, 16);
SIZE(Status, 8);
SIZE(WriteBatch, 32);
SIZE(WriteBatch::Handler, 8);
SIZE(Iterator, 40);
SIZE(EnvWrapper, 16);
SIZE(Cache, 16);
SIZE(Cache::Handle, 1);
SIZE(Table, 8);
SIZE(TableBuilder, 8);
SIZE(DB, 8);
SIZE(Snapshot, 8);
SIZE(Env, 8);
SIZE(Comparator, 8);
SIZE(FilterPolicy, 8);
SIZE(Logger, 8);
SIZE(WritableFile, 8);
SIZE(SequentialFile, 8);
SIZE(RandomAccessFile, 8);
SIZE(FileLock, 8);

int main() {}
