// Prints what DumpFile makes of the files that it is given. Run with both libraries over the same
// files.
#include <leveldb/dumpfile.h>
#include <leveldb/env.h>

#include <cstdio>

class Output : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    fwrite(data.data(), 1, data.size(), stdout);
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }
};

int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    printf("-- %s\n", argv[i]);
    Output output;
    printf("%s\n", leveldb::DumpFile(leveldb::Env::Default(), argv[i], &output).ToString().c_str());
  }
}
