// The directory of a database: made by these programs, and emptied only if they made it.

#ifndef LAB_COMMON_DIRECTORY_H_
#define LAB_COMMON_DIRECTORY_H_

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "failure.h"

namespace lab {

class Directory {
 public:
  // Creates it if it is missing, and marks it as ours if it is empty.
  static void Create(const std::string& path) {
    Guard(path, [&] {
      std::filesystem::create_directories(path);
      if (!std::filesystem::is_empty(path)) return;
      std::ofstream mark(path + "/" + kMark);
      mark << "A benchmark's database. Everything in this directory is removed when the next "
              "benchmark begins.\n";
      if (!mark.flush()) throw Failure("cannot write into " + path);
    });
  }

  // Throws if what is in it may belong to another program.
  static void Empty(const std::string& path) {
    Guard(path, [&] {
      if (!std::filesystem::exists(path) || std::filesystem::is_empty(path)) return;
      if (!std::filesystem::exists(path + "/" + kMark)) {
        throw Failure(path + " was not made by a benchmark (there is no " + kMark +
                      " in it), so it is not emptied");
      }
      for (const auto& entry : std::filesystem::directory_iterator(path)) {
        if (entry.path().filename() != kMark) std::filesystem::remove_all(entry.path());
      }
    });
  }

 private:
  static constexpr const char* kMark = "LAB-BENCHMARK";

  template <typename Body>
  static void Guard(const std::string& path, const Body& body) {
    try {
      body();
    } catch (const std::filesystem::filesystem_error& problem) {
      throw Failure(path + ": " + problem.what());
    }
  }
};

}  // namespace lab

#endif  // LAB_COMMON_DIRECTORY_H_
