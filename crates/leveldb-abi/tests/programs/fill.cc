// Makes a database whose files are worth dumping: several tables in several levels, deletions,
// bytes that are not text, records over several blocks, synchronous writes, and a second open that
// edits the MANIFEST. Argument: its directory.
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace leveldb;

static void Check(const Status& status) {
  if (status.ok()) return;
  fprintf(stderr, "%s\n", status.ToString().c_str());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 10;
  WriteOptions sync;
  sync.sync = true;
  for (int round = 0; round < 2; round++) {
    DB* db;
    Check(DB::Open(options, argv[1], &db));
    for (int i = 0; i < 4000; i++) {
      const std::string key =
          "key" + std::to_string(i * 7919 % 10007) + std::string(1, static_cast<char>(i));
      if (i % 11 == 0) {
        Check(db->Delete(WriteOptions(), key));
      } else {
        Check(db->Put(i % 500 == 0 ? sync : WriteOptions(), key,
                      std::string(i % 90, static_cast<char>(i * 31))));
      }
    }
    if (round == 0) db->CompactRange(nullptr, nullptr);
    WriteBatch batch;
    batch.Put("large", std::string(100000, '\xfe'));
    batch.Delete(std::string("\0'quoted'\n", 10));
    Check(db->Write(sync, &batch));
    Check(db->Put(WriteOptions(), "last", "one"));
    // The batch filled its memtable, and its log may be gone. This one is less than a memtable
    // holds: it stays in a log.
    WriteBatch smaller;
    smaller.Put("large", std::string(40000, '\xfd'));
    smaller.Delete(std::string("\0'quoted again'\n", 16));
    Check(db->Write(WriteOptions(), &smaller));
    delete db;
  }
}
