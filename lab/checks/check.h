// What the independent checks of the lab's figures share: loops as in LevelDB's own db_bench, and
// nothing of the lab's driver: no clock within a loop, another generator of random numbers.
//
// A check is a program
//
//     CHECK DIRECTORY NUM CACHE_SIZE WRITE_BUFFER_SIZE
//
// that prints a name and operations per second for each of fillseq, fillrandom, readrandom and
// readseq. It gives Main a class Store:
//
//     Store(const std::string& directory, uint64_t cache, uint64_t write_buffer);  // opens or creates
//     void Put(const std::string& key, std::string_view value);
//     bool Get(const std::string& key, std::string* value);
//     void Rest();                  // all work that was put off
//     template <typename Visit> void Scan(const Visit& visit);  // visit(size of key, size of value)

#ifndef LAB_CHECKS_CHECK_H_
#define LAB_CHECKS_CHECK_H_

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace check {

[[noreturn]] inline void Fail(const std::string& problem) {
  std::fprintf(stderr, "check: %s\n", problem.c_str());
  std::exit(1);
}

// One million bytes, of which a compressor leaves half.
inline std::string HalfCompressible() {
  std::minstd_rand random(301);
  std::string text;
  while (text.size() < 1000000) {
    std::string piece;
    for (int i = 0; i < 50; i++) piece += static_cast<char>(' ' + random() % 95);
    text += piece + piece;
  }
  return text;
}

template <typename Store>
class Bench {
 public:
  Bench(const std::string& directory, int num, uint64_t cache, uint64_t write_buffer)
      : directory_(directory),
        num_(num),
        cache_(cache),
        write_buffer_(write_buffer),
        values_(HalfCompressible()) {}

  void Fill(bool in_order) {
    store_.reset();
    for (const auto& entry : std::filesystem::directory_iterator(directory_))
      std::filesystem::remove_all(entry.path());
    store_ = std::make_unique<Store>(directory_, cache_, write_buffer_);
    const auto start = std::chrono::steady_clock::now();
    size_t at = 0;
    for (int i = 0; i < num_; i++) {
      const std::string& key = KeyOf(in_order ? i : Random());
      if (at + kValueSize > values_.size()) at = 0;
      store_->Put(key, std::string_view(values_.data() + at, kValueSize));
      at += kValueSize;
    }
    Report(in_order ? "fillseq" : "fillrandom", num_, start);
  }

  void Rest() { store_->Rest(); }

  void ReadRandom() {
    const auto start = std::chrono::steady_clock::now();
    std::string value;
    int found = 0;
    for (int i = 0; i < num_; i++) found += store_->Get(KeyOf(Random()), &value);
    Report("readrandom", num_, start);
    if (found < num_ / 2) Fail("too few keys found");
  }

  void ReadSequential() {
    const auto start = std::chrono::steady_clock::now();
    int steps = 0;
    size_t bytes = 0;
    store_->Scan([&](size_t key, size_t value) {
      bytes += key + value;
      steps++;
    });
    Report("readseq", steps, start);
    if (bytes != static_cast<size_t>(steps) * (kKeySize + kValueSize) || steps < num_ / 2)
      Fail("the scan met other entries than were put");
  }

 private:
  static constexpr size_t kKeySize = 16;
  static constexpr size_t kValueSize = 100;

  // Holds until the next one.
  const std::string& KeyOf(int number) {
    key_.assign(kKeySize, '0');
    for (size_t at = kKeySize; number > 0; number /= 10) key_[--at] += number % 10;
    return key_;
  }

  int Random() { return static_cast<int>(random_() % static_cast<unsigned>(num_)); }

  static void Report(const char* name, int operations,
                     std::chrono::steady_clock::time_point start) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%s %.0f\n", name, operations / seconds.count());
    std::fflush(stdout);
  }

  const std::string directory_;
  const int num_;
  const uint64_t cache_;
  const uint64_t write_buffer_;
  const std::string values_;
  std::string key_;
  std::mt19937 random_;
  std::unique_ptr<Store> store_;
};

template <typename Store>
int Main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s DIRECTORY NUM CACHE_SIZE WRITE_BUFFER_SIZE\n", argv[0]);
    return 2;
  }
  // A process for each fill: MariaDB's embedded server starts once in one.
  const pid_t child = fork();
  if (child < 0) Fail("fork");
  int status = 0;
  if (child != 0 && (waitpid(child, &status, 0) != child || status != 0)) return 1;
  // In a thread, as the lab's loops run. MariaDB's embedded server asks for each statement where its
  // thread's stack lies, and for a process's first thread the C library reads /proc/self/maps to
  // know, which takes ten times as long as the statement.
  std::thread([&] {
    Bench<Store> bench(argv[1], std::atoi(argv[2]), std::strtoull(argv[3], nullptr, 10),
                       std::strtoull(argv[4], nullptr, 10));
    bench.Fill(child == 0);
    if (child == 0) return;
    // The lab reads a database at rest.
    bench.Rest();
    bench.ReadRandom();
    bench.ReadSequential();
  }).join();
  return 0;
}

}  // namespace check

#endif  // LAB_CHECKS_CHECK_H_
