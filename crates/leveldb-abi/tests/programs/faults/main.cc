// faults NAME DIRECTORY: prints "holds", "fails" or "skipped", and what was seen. Without
// arguments: the names. faults --open DIRECTORY: exits with 0 if the database there can be opened.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "faults.h"

using namespace leveldb;

void Must(bool condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "the fault could not be provoked: %s\n", what);
  _Exit(2);
}

void Must(const Status& status) { Must(status.ok(), status.ToString().c_str()); }

std::unique_ptr<DB> Open(const std::string& path, Options options) {
  options.create_if_missing = true;
  DB* db = nullptr;
  Must(DB::Open(options, path, &db));
  return std::unique_ptr<DB>(db);
}

std::string Key(int i) {
  char text[16];
  snprintf(text, sizeof text, "key%08d", i);
  return text;
}

std::string Noise(uint64_t seed, size_t size) {
  std::string bytes(size, '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
  for (char& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<char>(state >> 32);
  }
  return bytes;
}

WriteOptions Synced() {
  WriteOptions options;
  options.sync = true;
  return options;
}

std::vector<std::string> Files(const std::string& dir, const std::string& suffix,
                               const std::string& prefix) {
  std::vector<std::string> names, found;
  Must(Env::Default()->GetChildren(dir, &names));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const bool ends = name.size() >= suffix.size() &&
                      name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
    if (ends && name.compare(0, prefix.size(), prefix) == 0 && name != "." && name != "..")
      found.push_back(dir + "/" + name);
  }
  return found;
}

uint64_t BytesOnDisk(const std::string& dir) {
  uint64_t bytes = 0;
  for (const std::string& path : Files(dir, "")) {
    struct stat data;
    // It may go meanwhile.
    if (stat(path.c_str(), &data) == 0 && S_ISREG(data.st_mode)) bytes += data.st_size;
  }
  return bytes;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Must(file.good(), path.c_str());
  std::ostringstream contents;
  contents << file.rdbuf();
  return contents.str();
}

void Replace(const std::string& path, const std::string& contents) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << contents;
  file.close();
  Must(file.good(), path.c_str());
}

void CopyAll(const std::string& from, const std::string& to) {
  mkdir(to.c_str(), 0777);
  for (const std::string& path : Files(from, "")) {
    struct stat data;
    Must(stat(path.c_str(), &data) == 0, path.c_str());
    if (S_ISREG(data.st_mode)) Replace(to + path.substr(from.size()), Contents(path));
  }
}

bool Eventually(bool (*condition)(void*), void* argument) {
  const char* const timeout = getenv("FAULTS_TIMEOUT");
  const double seconds = timeout == nullptr ? 5 : atof(timeout);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition(argument)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

struct Fault {
  const char* name;
  Verdict (*provoke)(const std::string& dir);
};

static const Fault kFaults[] = {
    {"failed-append", FailedAppend},
    {"prefix-across-logs", PrefixAcrossLogs},
    {"flipped-bit-in-log", FlippedBitInLog},
    {"malformed-batch", MalformedBatch},
    {"huge-value", HugeValue},
    {"repair-of-healthy", RepairOfHealthy},
    {"repair-of-damaged-log", RepairOfDamagedLog},
    {"flipped-bit-in-table", FlippedBitInTable},
    {"key-split-across-files", KeySplitAcrossFiles},
    {"manifest-growth", ManifestGrowth},
    {"space-of-deleted", SpaceOfDeleted},
    {"crawl-over-deleted", CrawlOverDeleted},
    {"reads-that-write", ReadsThatWrite},
    {"second-open", SecondOpen},
    {"forked-child", ForkedChild},
    {"hostile-current", HostileCurrent},
    {"full-disk", FullDisk},
    {"background-error", BackgroundError},
    {"stall-of-another", StallOfAnother},
    {"order-of-durability", OrderOfDurability},
};

int main(int count, char** arguments) {
  if (count == 1) {
    for (const Fault& fault : kFaults) printf("%s\n", fault.name);
    return 0;
  }
  if (count != 3) return 2;
  if (strcmp(arguments[1], "--open") == 0) {
    DB* db = nullptr;
    const Status status = DB::Open(Options(), arguments[2], &db);
    delete db;
    return status.ok() ? 0 : 1;
  }
  for (const Fault& fault : kFaults) {
    if (strcmp(arguments[1], fault.name) != 0) continue;
    static const char* const kKinds[] = {"holds", "fails", "skipped"};
    const Verdict verdict = fault.provoke(arguments[2]);
    printf("%s\n%s\n", kKinds[verdict.kind], verdict.what.c_str());
    return 0;
  }
  return 2;
}
