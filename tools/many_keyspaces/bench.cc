// Many column families in one RocksDB, with its default options.
//
//   bench DIR FAMILIES ENTRIES SECONDS MEGABYTES
//
// Does what lab/engines/rust/src/keyspaces.rs does with keyspaces: one thread writes the same
// entries in the same order, round robin. Prints the rate, memory and table files, then compares
// all entries with what was written. A second thread ends the program at the limit of seconds or
// of resident megabytes with status 4, and prints how far it got.
//
// Families are created a thousand at a time by CreateColumnFamilies. The C interface has functions
// for one alone, which write the options of all families again each time: 500 families took 77 s,
// and 9,000 by the thousand 49 s.
#include <rocksdb/db.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "parent.h"
#include "random.h"
#include "resources.h"

using Clock = std::chrono::steady_clock;
using Families = std::vector<rocksdb::ColumnFamilyHandle*>;

static const uint64_t families_at_once = 1000;

static double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

static void check(bool good, const std::string& what) {
  if (!good) {
    fprintf(stderr, "rocksdb keyspaces: %s\n", what.c_str());
    _exit(3);
  }
}

static void must(const rocksdb::Status& status) { check(status.ok(), status.ToString()); }

struct Arguments {
  std::string dir;
  uint64_t families, entries;
  double seconds, megabytes;
};

static std::atomic<uint64_t> created{0}, written{0};
static std::atomic<double> began_writing{0};
static std::mutex finishing;
static bool finished = false;

static double megabytes(const char* name) {
  return double(lab::internal::NumberIn("/proc/self/status", name)) / 1024;
}

static uint64_t tables(const std::string& dir) {
  uint64_t count = 0;
  lab::internal::ForEachFile(dir, [&](const std::string& path, const struct stat&) {
    count += path.size() > 4 && path.compare(path.size() - 4, 4, ".sst") == 0;
  });
  return count;
}

static std::string key_of(uint64_t entry) {
  char text[32];
  snprintf(text, sizeof text, "%08llu", (unsigned long long)entry);
  return text;
}

static std::string value_of(uint64_t family, uint64_t entry) {
  std::string value(100, 'v');
  lab::Random random(0, family, entry);
  for (size_t at = 0; at < 50; at += 8) {
    uint64_t number = random.Next();
    memcpy(&value[at], &number, std::min<size_t>(8, 50 - at));
  }
  return value;
}

static void watch(const Arguments& arguments, Clock::time_point start) {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::lock_guard<std::mutex> guard(finishing);
    if (finished) return;
    bool late = seconds_since(start) >= arguments.seconds;
    if (!late && megabytes("VmRSS") < arguments.megabytes) continue;
    printf(
        "rocksdb: ended at the limit of %.0f %s: %llu of %llu keyspaces created, %llu of %llu "
        "entries written",
        late ? arguments.seconds : arguments.megabytes, late ? "s" : "MB",
        (unsigned long long)created, (unsigned long long)arguments.families,
        (unsigned long long)written, (unsigned long long)(arguments.families * arguments.entries));
    if (written == arguments.families * arguments.entries) {
      printf(", the flush not finished");
    } else if (written > 0) {
      printf(", entries/s %.0f", double(written) / (seconds_since(start) - began_writing));
    }
    printf(", peak MB %.1f, resident MB %.1f, tables %llu\n", megabytes("VmHWM"),
           megabytes("VmRSS"), (unsigned long long)tables(arguments.dir));
    fflush(stdout);
    _exit(4);
  }
}

static void verify(rocksdb::DB* db, const Families& families, uint64_t entries) {
  for (size_t family = 0; family < families.size(); family++) {
    std::unique_ptr<rocksdb::Iterator> iter(db->NewIterator({}, families[family]));
    uint64_t entry = 0;
    for (iter->SeekToFirst(); iter->Valid(); iter->Next(), entry++) {
      check(entry < entries && iter->key() == key_of(entry) &&
                iter->value() == value_of(family, entry),
            "keyspace " + std::to_string(family) + ": not as written");
    }
    must(iter->status());
    check(entry == entries, "keyspace " + std::to_string(family) + ": " + std::to_string(entry) +
                                " entries of " + std::to_string(entries));
  }
}

// Flushes all memtables and waits until background work has ended.
static void flush(rocksdb::DB* db, const Families& families) {
  rocksdb::FlushOptions options;
  for (bool wait : {false, true}) {
    options.wait = wait;
    must(db->Flush(options, families));
  }
  lab::WaitUntilQuiet();
}

int main(int argc, char** argv) {
  lab::EndWithParent();
  check(argc == 6, "bench DIR FAMILIES ENTRIES SECONDS MEGABYTES");
  Arguments arguments{argv[1], strtoull(argv[2], nullptr, 10), strtoull(argv[3], nullptr, 10),
                      atof(argv[4]), atof(argv[5])};
  check(arguments.families > 0 && arguments.entries > 0, "no families or no entries");
  auto start = Clock::now();
  std::thread watcher(watch, arguments, start);
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  must(rocksdb::DB::Open(options, arguments.dir, &db));

  Families families;
  auto creating = Clock::now();
  while (created < arguments.families) {
    std::vector<std::string> names;
    uint64_t end = std::min(created + families_at_once, arguments.families);
    for (uint64_t family = created; family < end; family++)
      names.push_back("k" + std::to_string(family));
    Families some;
    must(db->CreateColumnFamilies(options, names, &some));
    families.insert(families.end(), some.begin(), some.end());
    created = end;
  }
  double create_seconds = seconds_since(creating);
  began_writing = seconds_since(start);
  auto writing = Clock::now();
  for (uint64_t entry = 0; entry < arguments.entries; entry++) {
    std::string key = key_of(entry);
    for (uint64_t family = 0; family < arguments.families; family++, written++) {
      must(db->Put({}, families[family], key, value_of(family, entry)));
    }
  }
  double write_seconds = seconds_since(writing);
  double unflushed_resident = megabytes("VmRSS");
  uint64_t unflushed_tables = tables(arguments.dir);
  auto flushing = Clock::now();
  flush(db, families);
  double flush_seconds = seconds_since(flushing);
  double resident = megabytes("VmRSS"), peak = megabytes("VmHWM");
  uint64_t table_files = tables(arguments.dir);
  {
    std::lock_guard<std::mutex> guard(finishing);
    finished = true;
  }
  watcher.join();

  verify(db, families, arguments.entries);
  for (auto* family : families) must(db->DestroyColumnFamilyHandle(family));
  must(db->Close());
  delete db;
  uint64_t entries = arguments.families * arguments.entries;
  printf(
      "rocksdb: keyspaces %llu, entries %llu, entries/s %.0f, peak MB %.1f, resident MB %.1f, "
      "tables %llu; seconds: create %.1f, write %.1f, flush %.1f; before the flush: resident MB "
      "%.1f, tables %llu\n",
      (unsigned long long)arguments.families, (unsigned long long)entries,
      double(entries) / write_seconds, peak, resident, (unsigned long long)table_files,
      create_seconds, write_seconds, flush_seconds, unflushed_resident,
      (unsigned long long)unflushed_tables);
  return 0;
}
