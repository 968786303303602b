// Table and TableBuilder: sorted files of plain keys.
#include "leveldb/table.h"

#include <memory>

#include "leveldb/comparator.h"
#include "leveldb/env.h"
#include "leveldb/table_builder.h"
#include "support.h"

namespace leveldb {

struct Table::Rep {
  shim_table* table;
};

Status Table::Open(const Options& options, RandomAccessFile* file, uint64_t file_size,
                   Table** table) {
  *table = nullptr;
  const shim_options settings = EngineOptions(options);
  shim_table* opened = nullptr;
  Status status = Take(shim_table_open(&settings, file, file_size, &kRandomCalls, &opened));
  if (status.ok()) *table = new Table(new Rep{opened});
  return status;
}

Table::~Table() {
  shim_table_release(rep_->table);
  delete rep_;
}

Iterator* Table::NewIterator(const ReadOptions& options) const {
  return NewEngineIterator(shim_table_cursor(rep_->table, options.fill_cache));
}

uint64_t Table::ApproximateOffsetOf(const Slice& key) const {
  return shim_table_offset(rep_->table, Bytes(key));
}

Status Table::InternalGet(const ReadOptions& options, const Slice& key, void* arg,
                          void (*handle_result)(void* arg, const Slice& k, const Slice& v)) {
  if (shim_table_may_contain(rep_->table, Bytes(key)) == 0) return Status();
  std::unique_ptr<Iterator> iterator(NewIterator(options));
  iterator->Seek(key);
  if (iterator->Valid()) handle_result(arg, iterator->key(), iterator->value());
  return iterator->status();
}

// Private members that LevelDB's library exports although no caller outside can reach them. Here so
// that the sets of symbols are equal; the engine does what they did.
Iterator* Table::BlockReader(void*, const ReadOptions&, const Slice&) { return NewEmptyIterator(); }
void Table::ReadMeta(const Footer&) {}
void Table::ReadFilter(const Slice&) {}
void TableBuilder::WriteBlock(BlockBuilder*, BlockHandle*) {}
void TableBuilder::WriteRawBlock(const Slice&, CompressionType, BlockHandle*) {}

struct TableBuilder::Rep {
  shim_table_builder* builder;
  const Comparator* comparator;
  Status status;

  // The first error stays.
  void Note(shim_outcome outcome) {
    Status result = Take(outcome);
    if (status.ok()) status = std::move(result);
  }
};

TableBuilder::TableBuilder(const Options& options, WritableFile* file) {
  const shim_options settings = EngineOptions(options);
  rep_ =
      new Rep{shim_table_builder_new(&settings, file, &kFileCalls), options.comparator, Status()};
}

TableBuilder::~TableBuilder() {
  shim_table_builder_release(rep_->builder);
  delete rep_;
}

Status TableBuilder::ChangeOptions(const Options& options) {
  if (options.comparator != rep_->comparator) {
    return Status::InvalidArgument("changing comparator while building table");
  }
  const shim_options settings = EngineOptions(options);
  return Take(shim_table_builder_change(rep_->builder, &settings));
}

void TableBuilder::Add(const Slice& key, const Slice& value) {
  if (ok()) rep_->Note(shim_table_builder_add(rep_->builder, Bytes(key), Bytes(value)));
}

void TableBuilder::Flush() {
  if (ok()) rep_->Note(shim_table_builder_flush(rep_->builder));
}

Status TableBuilder::status() const { return rep_->status; }

Status TableBuilder::Finish() {
  if (ok()) rep_->Note(shim_table_builder_finish(rep_->builder));
  return status();
}

void TableBuilder::Abandon() { shim_table_builder_abandon(rep_->builder); }

uint64_t TableBuilder::NumEntries() const { return shim_table_builder_entries(rep_->builder); }

uint64_t TableBuilder::FileSize() const { return shim_table_builder_size(rep_->builder); }

}  // namespace leveldb
