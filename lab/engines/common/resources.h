// The cost of a benchmark besides time, as the kernel counts it.

#ifndef LAB_COMMON_RESOURCES_H_
#define LAB_COMMON_RESOURCES_H_

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "failure.h"

namespace lab {

inline uint64_t NowNanos() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// User and system time of the whole process.
inline double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// For an engine that cannot be asked whether it is busy: it is not when its process no longer uses
// the processor. Returns the nanoseconds since it was last seen to use it.
inline uint64_t WaitUntilQuiet() {
  uint64_t busy = NowNanos();
  for (int idle = 0; idle < 3;) {
    const double before = CpuSeconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    idle = CpuSeconds() - before < 0.002 ? idle + 1 : 0;
    if (idle == 0) busy = NowNanos();
  }
  return NowNanos() - busy;
}

namespace internal {

// The number that follows `name` on a line of a file under /proc; 0 if there is none.
inline uint64_t NumberIn(const char* path, const std::string& name) {
  uint64_t found = 0;
  if (FILE* file = std::fopen(path, "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      unsigned long long number;
      if (name.compare(0, name.size(), line, name.size()) == 0 &&
          std::sscanf(line + name.size(), ": %llu", &number) == 1) {
        found = number;
      }
    }
    std::fclose(file);
  }
  return found;
}

template <typename Visit>
void ForEachFile(const std::string& directory, const Visit& visit) {
  std::error_code ignored;  // files come and go while an engine works
  for (std::filesystem::recursive_directory_iterator it(directory, ignored), end; it != end;
       it.increment(ignored)) {
    struct stat info;
    if (stat(it->path().c_str(), &info) == 0 && S_ISREG(info.st_mode))
      visit(it->path().string(), info);
  }
}

}  // namespace internal

// Bytes that the process wrote to files: what reached the page cache, not what the device wrote.
struct BytesWritten {
  uint64_t by_calls = internal::NumberIn("/proc/self/io", "wchar");
  uint64_t to_storage = internal::NumberIn("/proc/self/io", "write_bytes");

  uint64_t Since(const BytesWritten& start) const {
    return std::max(by_calls - start.by_calls, to_storage - start.to_storage);
  }
};

// Bytes that the storage device had to read, for calls as for faults in mapped files.
inline uint64_t BytesRead() { return internal::NumberIn("/proc/self/io", "read_bytes"); }

// Requests to the storage device, and bytes written to it, by the process's control group.
struct DeviceRequests {
  uint64_t reads = 0;
  uint64_t writes = 0;
  uint64_t bytes_written = 0;

  DeviceRequests Since(const DeviceRequests& start) const {
    return {reads - start.reads, writes - start.writes, bytes_written - start.bytes_written};
  }
};

// Nothing unless $LAB_IO_STAT names the group's `io.stat`, which has a line for each device:
// "259:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6". A stacked device and the one below it
// count the same requests, so that the greatest number counts.
inline std::optional<DeviceRequests> CountDeviceRequests() {
  const char* path = std::getenv("LAB_IO_STAT");
  std::ifstream file(path == nullptr ? "" : path);
  if (!file) return std::nullopt;
  DeviceRequests counted;
  const std::pair<std::string, uint64_t*> fields[] = {{"rios=", &counted.reads},
                                                      {"wios=", &counted.writes},
                                                      {"wbytes=", &counted.bytes_written}};
  for (std::string word; file >> word;) {
    for (const auto& [name, number] : fields) {
      if (word.compare(0, name.size(), name) == 0)
        *number = std::max<uint64_t>(*number, std::strtoull(word.c_str() + name.size(), nullptr, 10));
    }
  }
  return counted;
}

// The disk space of a directory's files.
inline uint64_t DiskBytes(const std::string& directory) {
  uint64_t bytes = 0;
  internal::ForEachFile(directory, [&](const std::string&, const struct stat& info) {
    bytes += static_cast<uint64_t>(info.st_blocks) * 512;
  });
  return bytes;
}

// Throws the files of a directory out of the page cache.
inline void DropPages(const std::string& directory) {
  sync();
  internal::ForEachFile(directory, [](const std::string& path, const struct stat&) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) throw Failure::Of("open", path);
    const int problem = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
    if (problem != 0) throw Failure("posix_fadvise " + path + ": " + std::strerror(problem));
  });
}

// Sets the peak of the process's memory back to what it uses now.
inline void ResetPeakMemory() {
  if (FILE* file = std::fopen("/proc/self/clear_refs", "w")) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

inline uint64_t PeakMemoryBytes() {
  return internal::NumberIn("/proc/self/status", "VmHWM") * 1024;
}

}  // namespace lab

#endif  // LAB_COMMON_RESOURCES_H_
