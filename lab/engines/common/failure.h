// Errors, and how they end an engine program.

#ifndef LAB_COMMON_FAILURE_H_
#define LAB_COMMON_FAILURE_H_

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace lab {

// The engine, or the machine under it, did not do what was asked: exit status 3.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  // A system call failed; errno says why.
  static Failure Of(const std::string& call, const std::string& path) {
    return Failure(call + " " + path + ": " + std::strerror(errno));
  }
};

// The command line cannot be followed: exit status 2.
class WrongUse : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace lab

#endif  // LAB_COMMON_FAILURE_H_
