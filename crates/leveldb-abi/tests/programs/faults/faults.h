// One function per fault that LevelDB 1.23 is known for. Each makes a database with whichever
// library it runs with, provokes the fault, and says whether the library holds. Compiled once,
// against Debian's headers.
#ifndef FAULTS_H_
#define FAULTS_H_

#include <leveldb/db.h>
#include <leveldb/env.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct Verdict {
  enum Kind { kHolds, kFails, kSkipped } kind;
  std::string what;
};

inline Verdict Judge(bool holds, const std::string& what) {
  return {holds ? Verdict::kHolds : Verdict::kFails, what};
}

// Each is given an empty directory. What they do is said where they are defined.
Verdict FailedAppend(const std::string& dir);
Verdict PrefixAcrossLogs(const std::string& dir);
Verdict FlippedBitInLog(const std::string& dir);
Verdict MalformedBatch(const std::string& dir);
Verdict HugeValue(const std::string& dir);
Verdict RepairOfHealthy(const std::string& dir);
Verdict RepairOfDamagedLog(const std::string& dir);
Verdict FlippedBitInTable(const std::string& dir);
Verdict KeySplitAcrossFiles(const std::string& dir);
Verdict ManifestGrowth(const std::string& dir);
Verdict SpaceOfDeleted(const std::string& dir);
Verdict CrawlOverDeleted(const std::string& dir);
Verdict ReadsThatWrite(const std::string& dir);
Verdict SecondOpen(const std::string& dir);
Verdict ForkedChild(const std::string& dir);
Verdict HostileCurrent(const std::string& dir);
Verdict FullDisk(const std::string& dir);
Verdict BackgroundError(const std::string& dir);
Verdict StallOfAnother(const std::string& dir);
// Prints observable events; the tracer of the process's system calls judges.
Verdict OrderOfDurability(const std::string& dir);

// Ends the program with a message if something that must work does not: the fault could not be
// provoked.
void Must(const leveldb::Status& status);
void Must(bool condition, const char* what);

// Opens a database, a new one if there is none.
std::unique_ptr<leveldb::DB> Open(const std::string& path,
                                  leveldb::Options options = leveldb::Options());
std::string Key(int i);
// Bytes that do not compress, the same for the same seed.
std::string Noise(uint64_t seed, size_t size);
leveldb::WriteOptions Synced();

// Paths of a directory's files, in order, whose names end or begin like this.
std::vector<std::string> Files(const std::string& dir, const std::string& suffix,
                               const std::string& prefix = "");
uint64_t BytesOnDisk(const std::string& dir);
std::string Contents(const std::string& path);
void Replace(const std::string& path, const std::string& contents);
void CopyAll(const std::string& from, const std::string& to);
// Polls a condition, for what has no event to wait for in LevelDB's interface. Gives up after as
// many seconds as FAULTS_TIMEOUT says: where a fault is expected that is time lost, where none is
// it is never used up.
bool Eventually(bool (*condition)(void*), void* argument);
template <typename Condition>
bool Eventually(Condition condition) {
  return Eventually([](void* argument) { return (*static_cast<Condition*>(argument))(); },
                    &condition);
}

#endif  // FAULTS_H_
