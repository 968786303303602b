// Locking transactions and counters under load.
//
//   bench deadlock DIR ROUNDS             two transactions that wait for each other: time until one is told
//   bench locks DIR SECONDS THREADS       transactions that lock two of four keys: commits of each thread, waits
//   bench counters DIR SECONDS THREADS    counters on 1 and on 1,000 keys, in every way that the engine has
//   bench orders DIR SECONDS THREADS      new orders and payments, half and half, after TPC-C
//
// Built against terrace/c.h, or with -DROCKSDB against RocksDB's TransactionDB. Every run checks
// that nothing was lost.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#ifdef ROCKSDB
#include <rocksdb/merge_operator.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/utilities/transaction_db.h>
#else
#include <leveldb/c.h>
#include <terrace/c.h>
#endif

using Clock = std::chrono::steady_clock;

static double micros_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

static void check(bool good, const std::string& what) {
  if (!good) {
    fprintf(stderr, "%s\n", what.c_str());
    exit(1);
  }
}

static std::string number(int64_t value, size_t size = 8) {
  std::string bytes(size, 'x');
  memcpy(&bytes[0], &value, 8);
  return bytes;
}

static int64_t number_of(const std::string& value) {
  int64_t result = 0;
  if (value.size() >= 8) memcpy(&result, value.data(), 8);
  return result;
}

struct Random {
  uint64_t state;
  uint32_t below(uint32_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return uint32_t(((state >> 33) * bound) >> 31);
  }
};

// Of a call in a transaction: whether it has to be run again.
enum class Outcome { done, again };

#ifdef ROCKSDB
struct AddOperator : rocksdb::AssociativeMergeOperator {
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice* present, const rocksdb::Slice& operand, std::string* value,
             rocksdb::Logger*) const override {
    *value = number((present == nullptr ? 0 : number_of(present->ToString())) + number_of(operand.ToString()));
    return true;
  }
  const char* Name() const override { return "add"; }
};

static const char* engine = "rocksdb";

struct Database {
  rocksdb::TransactionDB* db;
  static void must(const rocksdb::Status& status) { check(status.ok(), status.ToString()); }
  explicit Database(const std::string& path) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 4 << 20;
    options.merge_operator = std::make_shared<AddOperator>();
    must(rocksdb::TransactionDB::Open(options, rocksdb::TransactionDBOptions(), path, &db));
  }
  ~Database() { delete db; }
  void put(const std::string& key, const std::string& value) { must(db->Put({}, key, value)); }
  std::string get(const std::string& key) {
    std::string value;
    db->Get({}, key, &value);
    return value;
  }
};

struct Transaction {
  rocksdb::Transaction* txn;
  explicit Transaction(Database& db) {
    rocksdb::TransactionOptions options;
    options.deadlock_detect = true;
    options.lock_timeout = 10000;
    txn = db.db->BeginTransaction({}, options);
  }
  ~Transaction() { delete txn; }
  static Outcome outcome(const rocksdb::Status& status) {
    if (status.IsBusy() || status.IsTryAgain() || status.IsTimedOut()) return Outcome::again;
    check(status.ok() || status.IsNotFound(), status.ToString());
    return Outcome::done;
  }
  Outcome get_for_update(const std::string& key, std::string* value) {
    value->clear();
    return outcome(txn->GetForUpdate({}, key, value));
  }
  void get(const std::string& key, std::string* value) { txn->Get({}, key, value); }
  Outcome put(const std::string& key, const std::string& value) { return outcome(txn->Put(key, value)); }
  Outcome commit() { return outcome(txn->Commit()); }
};

using Way = void (*)(Database&, const std::string&);
static void merge(Database& db, const std::string& key) { Database::must(db.db->Merge({}, key, number(1))); }
static const std::vector<std::pair<const char*, Way>> own_ways = {{"merge", merge}};
#else
static const char* engine = "terrace";

struct Database {
  leveldb_t* db;
  static void must(char* error) { check(error == nullptr, error == nullptr ? "" : error); }
  static leveldb_writeoptions_t* writes() {
    static leveldb_writeoptions_t* options = leveldb_writeoptions_create();
    return options;
  }
  explicit Database(const std::string& path) {
    leveldb_options_t* options = leveldb_options_create();
    leveldb_options_set_create_if_missing(options, 1);
    char* error = nullptr;
    db = leveldb_open(options, path.c_str(), &error);
    must(error);
    leveldb_options_destroy(options);
  }
  ~Database() { leveldb_close(db); }
  void put(const std::string& key, const std::string& value) {
    char* error = nullptr;
    leveldb_put(db, writes(), key.data(), key.size(), value.data(), value.size(), &error);
    must(error);
  }
  std::string get(const std::string& key) {
    static leveldb_readoptions_t* options = leveldb_readoptions_create();
    char* error = nullptr;
    size_t length = 0;
    char* value = leveldb_get(db, options, key.data(), key.size(), &length, &error);
    must(error);
    std::string result(value == nullptr ? "" : value, value == nullptr ? 0 : length);
    leveldb_free(value);
    return result;
  }
};

struct Transaction {
  terrace_transaction_t* txn;
  explicit Transaction(Database& db) {
    char* error = nullptr;
    txn = terrace_transaction_begin(db.db, terrace_transaction_locking, 10000000, &error);
    Database::must(error);
  }
  ~Transaction() { terrace_transaction_destroy(txn); }
  // Errors of a lock; those of the device end the run when it is committed.
  static Outcome outcome(char* error) {
    if (error == nullptr) return Outcome::done;
    leveldb_free(error);
    return Outcome::again;
  }
  Outcome get_for_update(const std::string& key, std::string* value) {
    char* error = nullptr;
    size_t length = 0;
    char* found = terrace_transaction_get_for_update(txn, key.data(), key.size(), &length, &error);
    value->assign(found == nullptr ? "" : found, found == nullptr ? 0 : length);
    leveldb_free(found);
    return outcome(error);
  }
  void get(const std::string& key, std::string* value) {
    char* error = nullptr;
    size_t length = 0;
    char* found = terrace_transaction_get(txn, key.data(), key.size(), &length, &error);
    Database::must(error);
    value->assign(found == nullptr ? "" : found, found == nullptr ? 0 : length);
    leveldb_free(found);
  }
  Outcome put(const std::string& key, const std::string& value) {
    char* error = nullptr;
    terrace_transaction_put(txn, key.data(), key.size(), value.data(), value.size(), &error);
    Database::must(error);
    return Outcome::done;
  }
  Outcome commit() {
    char* error = nullptr;
    int result = terrace_transaction_commit(txn, Database::writes(), &error);
    check(result != 2, error == nullptr ? "" : error);
    return outcome(error);
  }
};

using Way = void (*)(Database&, const std::string&);
static void increment(Database& db, const std::string& key) {
  char* error = nullptr;
  terrace_increment(db.db, Database::writes(), key.data(), key.size(), 1, &error);
  Database::must(error);
}
static char* one_more(void*, const char* value, size_t length, size_t* new_length) {
  std::string next = number(number_of(std::string(value == nullptr ? "" : value, value == nullptr ? 0 : length)) + 1);
  char* copy = static_cast<char*>(malloc(next.size()));
  memcpy(copy, next.data(), next.size());
  *new_length = next.size();
  return copy;
}
static void update(Database& db, const std::string& key) {
  char* error = nullptr;
  terrace_update(db.db, Database::writes(), key.data(), key.size(), nullptr, one_more, &error);
  Database::must(error);
}
static const std::vector<std::pair<const char*, Way>> own_ways = {{"increment (MergeOperator)", increment},
                                                                  {"update", update}};
#endif

static void transact(Database& db, const std::string& key) {
  for (;;) {
    Transaction txn(db);
    std::string value;
    if (txn.get_for_update(key, &value) == Outcome::done &&
        txn.put(key, number(number_of(value) + 1)) == Outcome::done && txn.commit() == Outcome::done)
      return;
  }
}

static void print_times(const char* what, std::vector<double>& micros) {
  std::sort(micros.begin(), micros.end());
  if (micros.empty()) return;
  auto at = [&](double part) { return micros[size_t(double(micros.size() - 1) * part)]; };
  printf("%s %s: %zu, median %.1f us, p99 %.1f us, most %.1f us\n", engine, what, micros.size(), at(0.5), at(0.99),
         micros.back());
}

static void deadlocks(Database& db, int rounds) {
  std::vector<double> times;
  std::mutex lock;
  for (int round = 0; round < rounds; round++) {
    std::atomic<int> holding{0}, waiting{0};
    std::atomic<int> refused{0};
    auto run = [&](const std::string& first, const std::string& second) {
      Transaction txn(db);
      std::string value;
      check(txn.get_for_update(first, &value) == Outcome::done, "a free lock");
      holding++;
      while (holding < 2) {
      }
      // From here on: the cycle closes when the later of the two waits.
      waiting++;
      while (waiting < 2) {
      }
      auto start = Clock::now();
      if (txn.get_for_update(second, &value) == Outcome::again) {
        refused++;
        std::lock_guard<std::mutex> guard(lock);
        times.push_back(micros_since(start));
      }
    };
    std::thread other(run, "a", "b");
    run("b", "a");
    other.join();
    check(refused == 1, "exactly one gives way");
  }
  print_times("deadlocks found after", times);
}

static void locks(Database& db, int seconds, int threads) {
  std::atomic<bool> done{false};
  std::mutex lock;
  std::vector<double> waits;
  std::vector<uint64_t> commits(static_cast<size_t>(threads)), refused(static_cast<size_t>(threads));
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; thread++) {
    running.emplace_back([&, thread] {
      Random random{uint64_t(thread) + 1};
      std::vector<double> own;
      while (!done) {
        std::string keys[2] = {std::to_string(random.below(4)), std::to_string(random.below(4))};
        auto start = Clock::now();
        for (;;) {
          Transaction txn(db);
          bool good = true;
          for (auto& key : keys) {
            std::string value;
            good = good && txn.get_for_update(key, &value) == Outcome::done &&
                   txn.put(key, number(number_of(value) + 1)) == Outcome::done;
          }
          if (good && txn.commit() == Outcome::done) break;
          refused[size_t(thread)]++;
        }
        own.push_back(micros_since(start));
        commits[size_t(thread)]++;
      }
      std::lock_guard<std::mutex> guard(lock);
      waits.insert(waits.end(), own.begin(), own.end());
    });
  }
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  done = true;
  for (auto& thread : running) thread.join();
  int64_t sum = 0;
  uint64_t all = 0, again = 0;
  for (int key = 0; key < 4; key++) sum += number_of(db.get(std::to_string(key)));
  for (auto count : commits) all += count;
  for (auto count : refused) again += count;
  check(sum == int64_t(2 * all), "an update was lost");
  auto ends = std::minmax_element(commits.begin(), commits.end());
  printf("%s locks: %d threads, %d s, %llu commits, of a thread %llu to %llu; %llu run again\n", engine, threads, seconds,
         (unsigned long long)all, (unsigned long long)*ends.first, (unsigned long long)*ends.second,
         (unsigned long long)again);
  print_times("transactions from first attempt to commit", waits);
}

static void counters(Database& db, int seconds, int most_threads) {
  auto ways = own_ways;
  ways.push_back({"transaction, locking", transact});
  for (auto& way : ways) {
    for (uint32_t keys : {1u, 1000u}) {
      for (int threads = 1; threads <= most_threads; threads *= 2) {
        std::atomic<bool> done{false};
        std::atomic<uint64_t> all{0};
        auto name = [&](uint32_t key) { return std::string(way.first) + std::to_string(threads) + "/" + std::to_string(keys) + "/" + std::to_string(key); };
        std::vector<std::thread> running;
        for (int thread = 0; thread < threads; thread++) {
          running.emplace_back([&, thread] {
            Random random{uint64_t(thread) + 1};
            uint64_t own = 0;
            for (; !done; own++) way.second(db, name(random.below(keys)));
            all += own;
          });
        }
        std::this_thread::sleep_for(std::chrono::seconds(seconds));
        done = true;
        for (auto& thread : running) thread.join();
        int64_t sum = 0;
        for (uint32_t key = 0; key < keys; key++) sum += number_of(db.get(name(key)));
        check(sum == int64_t(all), "an update was lost");
        printf("%s counters by %s: %u keys, %d threads: %.0f op/s\n", engine, way.first, keys, threads,
               double(all) / seconds);
        fflush(stdout);
      }
    }
  }
}

static const uint32_t warehouses = 4, districts = 10, customers = 300, items = 1000;

static std::string row(const char* table, uint32_t a, uint32_t b = 0, uint32_t c = 0, uint32_t d = 0) {
  char text[80];
  snprintf(text, sizeof text, "%s/%04u/%04u/%08u/%02u", table, a, b, c, d);
  return text;
}

#define STEP(call) if ((call) != Outcome::done) return Outcome::again

// Adds to the number at the beginning of a row that it locks.
static Outcome add(Transaction& txn, const std::string& key, int64_t by, int64_t* before = nullptr) {
  std::string value;
  STEP(txn.get_for_update(key, &value));
  int64_t present = number_of(value);
  if (before != nullptr) *before = present;
  return txn.put(key, number(present + by, std::max<size_t>(value.size(), 8)));
}

static Outcome new_order(Database& db, Random random) {
  Transaction txn(db);
  uint32_t warehouse = random.below(warehouses), district = random.below(districts);
  int64_t order = 0;
  STEP(add(txn, row("district-next", warehouse, district), 1, &order));
  std::vector<uint32_t> lines(5 + random.below(11));
  for (auto& line : lines) line = random.below(items);
  std::sort(lines.begin(), lines.end());
  for (uint32_t line = 0; line < lines.size(); line++) {
    STEP(add(txn, row("stock", warehouse, 0, lines[line]), -1));
    STEP(txn.put(row("line", warehouse, district, uint32_t(order), line), number(lines[line], 54)));
  }
  std::string value;
  txn.get(row("customer", warehouse, district, random.below(customers)), &value);
  STEP(txn.put(row("order", warehouse, district, uint32_t(order)), number(int64_t(lines.size()), 24)));
  return txn.commit();
}

static Outcome payment(Database& db, Random random, uint64_t id) {
  Transaction txn(db);
  uint32_t warehouse = random.below(warehouses), district = random.below(districts);
  int64_t amount = 1 + random.below(5000);
  STEP(add(txn, row("warehouse", warehouse), amount));
  STEP(add(txn, row("district", warehouse, district), amount));
  STEP(add(txn, row("customer", warehouse, district, random.below(customers)), -amount));
  STEP(txn.put(row("history", warehouse, district, uint32_t(id), uint32_t(id >> 32)), number(amount, 46)));
  return txn.commit();
}

static void orders(Database& db, int seconds, int threads) {
  for (uint32_t warehouse = 0; warehouse < warehouses; warehouse++) {
    db.put(row("warehouse", warehouse), number(0, 90));
    for (uint32_t item = 0; item < items; item++) db.put(row("stock", warehouse, 0, item), number(0, 300));
    for (uint32_t district = 0; district < districts; district++) {
      db.put(row("district", warehouse, district), number(0, 95));
      for (uint32_t customer = 0; customer < customers; customer++)
        db.put(row("customer", warehouse, district, customer), number(0, 600));
    }
  }
  std::atomic<bool> done{false};
  std::atomic<uint64_t> ordered{0}, paid{0}, again{0};
  std::mutex lock;
  std::vector<double> times;
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; thread++) {
    running.emplace_back([&, thread] {
      Random random{uint64_t(thread) + 1};
      std::vector<double> own;
      for (uint64_t count = 0; !done; count++) {
        bool pays = random.below(2) == 0;
        Random inside{random.state ^ (count << 20)};
        auto start = Clock::now();
        while ((pays ? payment(db, inside, count << 8 | uint64_t(thread)) : new_order(db, inside)) == Outcome::again)
          again++;
        own.push_back(micros_since(start));
        (pays ? paid : ordered)++;
      }
      std::lock_guard<std::mutex> guard(lock);
      times.insert(times.end(), own.begin(), own.end());
    });
  }
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  done = true;
  for (auto& thread : running) thread.join();
  int64_t next = 0, in_warehouses = 0, in_districts = 0;
  for (uint32_t warehouse = 0; warehouse < warehouses; warehouse++) {
    in_warehouses += number_of(db.get(row("warehouse", warehouse)));
    for (uint32_t district = 0; district < districts; district++) {
      next += number_of(db.get(row("district-next", warehouse, district)));
      in_districts += number_of(db.get(row("district", warehouse, district)));
    }
  }
  check(next == int64_t(ordered) && in_warehouses == in_districts, "the books do not balance");
  printf("%s orders: %d threads: %.0f transactions/s (%llu orders, %llu payments, %llu run again)\n", engine, threads,
         double(ordered + paid) / seconds, (unsigned long long)ordered, (unsigned long long)paid,
         (unsigned long long)again);
  print_times("transactions", times);
}

int main(int argc, char** argv) {
  check(argc >= 4, "bench deadlock|locks|counters|orders DIR ROUNDS|SECONDS [THREADS]");
  std::string what = argv[1];
  Database db(argv[2]);
  int count = atoi(argv[3]), threads = argc > 4 ? atoi(argv[4]) : 4;
  if (what == "deadlock") deadlocks(db, count);
  if (what == "locks") locks(db, count, threads);
  if (what == "counters") counters(db, count, threads);
  if (what == "orders") orders(db, count, threads);
  return 0;
}
