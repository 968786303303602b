// A program that the harness has started ends when the harness is gone, however that ended.

#ifndef LAB_COMMON_PARENT_H_
#define LAB_COMMON_PARENT_H_

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace lab {

// The harness names itself in LAB_PARENT; a program that is started by hand lives on.
inline void EndWithParent() {
  const char* const parent = std::getenv("LAB_PARENT");
  if (parent == nullptr) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have ended before that.
  if (std::to_string(getppid()) != parent) _exit(3);
}

}  // namespace lab

#endif  // LAB_COMMON_PARENT_H_
