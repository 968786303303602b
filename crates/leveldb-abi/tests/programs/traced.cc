// What tests/dropin/traces.rs expects in a trace, by the C++ classes.

#include <leveldb/db.h>
#include <leveldb/write_batch.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

namespace {

void Check(const leveldb::Status& status) {
  if (status.ok() || status.IsNotFound()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  leveldb::Options options;
  options.create_if_missing = true;
  leveldb::DB* db = nullptr;
  Check(leveldb::DB::Open(options, argv[1], &db));
  leveldb::WriteOptions write;

  Check(db->Put(write, "a", "secret"));
  write.sync = true;
  Check(db->Delete(write, "b"));
  leveldb::WriteBatch batch;
  batch.Put("c", "");
  batch.Delete("d");
  Check(db->Write(write, &batch));
  std::string value;
  Check(db->Get(leveldb::ReadOptions(), "missing", &value));

  // A child's end writes nothing to the trace.
  const pid_t child = fork();
  if (child == 0) std::exit(0);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return 3;

  {
    std::unique_ptr<leveldb::Iterator> iter(db->NewIterator(leveldb::ReadOptions()));
    iter->Seek("a");
    iter->Next();
    iter->Prev();
    iter->SeekToFirst();
    iter->SeekToLast();
    iter->Prev();
  }

  // Some programs end without closing anything.
  if (argc > 2 && std::string(argv[2]) == "exit") return 0;
  delete db;
  return 0;
}
