// A comparator and a filter policy with names in Latin-1, which are not UTF-8. Opens the database,
// or makes it, adds a key, and prints how many keys there are and whether the filter was asked.
// Arguments: the database and the key.
#include <leveldb/db.h>
#include <leveldb/comparator.h>
#include <leveldb/filter_policy.h>

#include <cstdio>
#include <memory>
#include <string>

using namespace leveldb;

class Bytewise : public Comparator {
 public:
  const char* Name() const override {
    return "gr\xf6\xdf"
           "e";
  }
  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

class CountingPolicy : public FilterPolicy {
 public:
  const char* Name() const override { return "sch\xf6n"; }
  void CreateFilter(const Slice*, int, std::string* dst) const override { dst->push_back('f'); }
  bool KeyMayMatch(const Slice&, const Slice& filter) const override {
    asked = asked || filter == Slice("f");
    return true;
  }
  mutable bool asked = false;
};

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  Bytewise comparator;
  CountingPolicy policy;
  Options options;
  options.create_if_missing = true;
  options.comparator = &comparator;
  options.filter_policy = &policy;
  DB* opened = nullptr;
  Status s = DB::Open(options, argv[1], &opened);
  if (!s.ok()) {
    printf("%s\n", s.ToString().c_str());
    return 1;
  }
  std::unique_ptr<DB> db(opened);
  std::string value;
  s = db->Get(ReadOptions(), "first", &value);
  s = db->Put(WriteOptions(), argv[2], "value");
  if (s.ok()) db->CompactRange(nullptr, nullptr);
  int keys = 0;
  std::unique_ptr<Iterator> iter(db->NewIterator(ReadOptions()));
  for (iter->SeekToFirst(); iter->Valid(); iter->Next()) keys++;
  printf("%s, %d keys, filter %s\n", s.ToString().c_str(), keys,
         policy.asked ? "asked" : "not asked");
  return 0;
}
