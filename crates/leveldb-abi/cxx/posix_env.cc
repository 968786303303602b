// Env::Default(): the system's files for programs that call the environment themselves, and under
// their own environments that pass calls on. Databases in the default environment do not come
// through here: the engine has its own way to the system.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <thread>

#include "leveldb/env.h"
#include "support.h"

namespace leveldb {

namespace {

Status SystemError(const std::string& name, int error) {
  return error == ENOENT ? Status::NotFound(name, std::strerror(error))
                         : Status::IOError(name, std::strerror(error));
}

Status SystemError(const std::string& name) { return SystemError(name, errno); }

Status Done(int result, const std::string& name) {
  return result == 0 ? Status() : SystemError(name);
}

int Open(const std::string& name, int flags) {
  return ::open(name.c_str(), flags | O_CLOEXEC, 0644);
}

class PosixSequentialFile final : public SequentialFile {
 public:
  PosixSequentialFile(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}
  ~PosixSequentialFile() override { ::close(fd_); }

  Status Read(size_t n, Slice* result, char* scratch) override {
    ssize_t got;
    do { got = ::read(fd_, scratch, n); } while (got < 0 && errno == EINTR);
    *result = Slice(scratch, got < 0 ? 0 : got);
    return got < 0 ? SystemError(name_) : Status();
  }

  Status Skip(uint64_t n) override {
    return ::lseek(fd_, static_cast<off_t>(n), SEEK_CUR) < 0 ? SystemError(name_) : Status();
  }

 private:
  const std::string name_;
  const int fd_;
};

class PosixRandomAccessFile final : public RandomAccessFile {
 public:
  PosixRandomAccessFile(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}
  ~PosixRandomAccessFile() override { ::close(fd_); }

  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const override {
    size_t filled = 0;
    while (filled < n) {
      const ssize_t got =
          ::pread(fd_, scratch + filled, n - filled, static_cast<off_t>(offset + filled));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        *result = Slice();
        return SystemError(name_);
      }
      if (got == 0) break;
      filled += static_cast<size_t>(got);
    }
    *result = Slice(scratch, filled);
    return Status();
  }

 private:
  const std::string name_;
  const int fd_;
};

// Small appends are collected.
class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}

  ~PosixWritableFile() override {
    if (fd_ >= 0) Close();
  }

  Status Append(const Slice& data) override {
    if (buffer_.size() + data.size() <= kBuffer) {
      buffer_.append(data.data(), data.size());
      return Status();
    }
    Status status = Flush();
    if (!status.ok()) return status;
    if (data.size() >= kBuffer) return Write(data);
    buffer_.assign(data.data(), data.size());
    return Status();
  }

  Status Close() override {
    Status status = Flush();
    const int fd = fd_;
    fd_ = -1;
    if (fd >= 0 && ::close(fd) < 0 && status.ok()) status = SystemError(name_);
    return status;
  }

  Status Flush() override {
    Status status = Write(buffer_);
    buffer_.clear();
    return status;
  }

  // The name is made durable with the bytes: the callers of this interface have no other way to say
  // so.
  Status Sync() override {
    Status status = Flush();
    if (!status.ok()) return status;
    if (::fsync(fd_) < 0) return SystemError(name_);
    if (!name_is_durable_) {
      status = SyncDirectory();
      name_is_durable_ = status.ok();
    }
    return status;
  }

 private:
  static constexpr size_t kBuffer = 65536;

  Status Write(const Slice& data) {
    for (size_t written = 0; written < data.size();) {
      const ssize_t result = ::write(fd_, data.data() + written, data.size() - written);
      if (result < 0 && errno == EINTR) continue;
      if (result < 0) return SystemError(name_);
      written += static_cast<size_t>(result);
    }
    return Status();
  }

  Status SyncDirectory() const {
    const size_t slash = name_.rfind('/');
    const std::string dir = slash == std::string::npos ? "." : name_.substr(0, slash + 1);
    const int fd = Open(dir, O_RDONLY);
    if (fd < 0) return SystemError(dir);
    // Some file systems have no notion of it.
    Status status = ::fsync(fd) < 0 && errno != EINVAL ? SystemError(dir) : Status();
    ::close(fd);
    return status;
  }

  const std::string name_;
  int fd_;
  std::string buffer_;
  bool name_is_durable_ = false;
};

class PosixFileLock final : public FileLock {
 public:
  explicit PosixFileLock(shim_lock* lock) : lock_(lock) {}
  ~PosixFileLock() override { shim_unlock_file(lock_); }

 private:
  shim_lock* const lock_;
};

// A line each: time, thread, message.
class PosixLogger final : public Logger {
 public:
  explicit PosixLogger(std::FILE* file) : file_(file) {}
  ~PosixLogger() override { std::fclose(file_); }

  void Logv(const char* format, std::va_list arguments) override {
    struct timeval now;
    ::gettimeofday(&now, nullptr);
    struct tm parts;
    ::localtime_r(&now.tv_sec, &parts);
    char prefix[64];
    const int prefix_size = std::snprintf(
        prefix, sizeof(prefix), "%04d/%02d/%02d-%02d:%02d:%02d.%06d %ld ", parts.tm_year + 1900,
        parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
        static_cast<int>(now.tv_usec), static_cast<long>(::syscall(SYS_gettid)));
    std::va_list again;
    va_copy(again, arguments);
    const int size = std::vsnprintf(nullptr, 0, format, again);
    va_end(again);
    if (size < 0) return;
    std::string line(prefix, prefix_size);
    const size_t at = line.size();
    line.resize(at + size + 1);
    std::vsnprintf(&line[at], size + 1, format, arguments);
    line.back() = '\n';
    if (line[line.size() - 2] == '\n') line.pop_back();
    std::fwrite(line.data(), 1, line.size(), file_);
    std::fflush(file_);
  }

 private:
  std::FILE* const file_;
};

template <typename File, typename Result>
Status OpenAs(const std::string& name, int flags, Result** result) {
  *result = nullptr;
  const int fd = Open(name, flags);
  if (fd < 0) return SystemError(name);
  *result = new File(name, fd);
  return Status();
}

class PosixEnv final : public Env {
 public:
  Status NewSequentialFile(const std::string& name, SequentialFile** result) override {
    return OpenAs<PosixSequentialFile>(name, O_RDONLY, result);
  }

  Status NewRandomAccessFile(const std::string& name, RandomAccessFile** result) override {
    return OpenAs<PosixRandomAccessFile>(name, O_RDONLY, result);
  }

  Status NewWritableFile(const std::string& name, WritableFile** result) override {
    return OpenAs<PosixWritableFile>(name, O_TRUNC | O_WRONLY | O_CREAT, result);
  }

  Status NewAppendableFile(const std::string& name, WritableFile** result) override {
    return OpenAs<PosixWritableFile>(name, O_APPEND | O_WRONLY | O_CREAT, result);
  }

  bool FileExists(const std::string& name) override { return ::access(name.c_str(), F_OK) == 0; }

  Status GetChildren(const std::string& dir, std::vector<std::string>* result) override {
    result->clear();
    DIR* stream = ::opendir(dir.c_str());
    if (stream == nullptr) return SystemError(dir);
    while (const struct dirent* entry = ::readdir(stream)) result->emplace_back(entry->d_name);
    ::closedir(stream);
    return Status();
  }

  Status RemoveFile(const std::string& name) override { return Done(::unlink(name.c_str()), name); }
  Status CreateDir(const std::string& name) override {
    return Done(::mkdir(name.c_str(), 0755), name);
  }
  Status RemoveDir(const std::string& name) override { return Done(::rmdir(name.c_str()), name); }

  Status GetFileSize(const std::string& name, uint64_t* size) override {
    struct stat info;
    *size = 0;
    if (::stat(name.c_str(), &info) != 0) return SystemError(name);
    *size = static_cast<uint64_t>(info.st_size);
    return Status();
  }

  Status RenameFile(const std::string& from, const std::string& to) override {
    return Done(std::rename(from.c_str(), to.c_str()), from);
  }

  Status LockFile(const std::string& name, FileLock** lock) override {
    *lock = nullptr;
    shim_lock* held = nullptr;
    Status status = Take(shim_lock_file(Bytes(name), &held));
    if (status.ok()) *lock = new PosixFileLock(held);
    return status;
  }

  Status UnlockFile(FileLock* lock) override {
    delete lock;
    return Status();
  }

  void Schedule(void (*function)(void*), void* argument) override {
    shim_schedule(function, argument);
  }

  void StartThread(void (*function)(void*), void* argument) override {
    std::thread(function, argument).detach();
  }

  Status GetTestDirectory(std::string* path) override {
    shim_test_directory(path, AssignTo);
    return Status();
  }

  Status NewLogger(const std::string& name, Logger** result) override {
    *result = nullptr;
    const int fd = Open(name, O_APPEND | O_WRONLY | O_CREAT);
    if (fd < 0) return SystemError(name);
    std::FILE* file = ::fdopen(fd, "w");
    if (file == nullptr) {
      const int error = errno;
      ::close(fd);
      return SystemError(name, error);
    }
    *result = new PosixLogger(file);
    return Status();
  }

  uint64_t NowMicros() override {
    struct timeval now;
    ::gettimeofday(&now, nullptr);
    return static_cast<uint64_t>(now.tv_sec) * 1000000 + now.tv_usec;
  }

  void SleepForMicroseconds(int micros) override {
    if (micros > 0) std::this_thread::sleep_for(std::chrono::microseconds(micros));
  }
};

}  // namespace

Env* Env::Default() {
  // Never destroyed: threads may use it until the process ends.
  static Env* const kDefault = new PosixEnv;
  return kDefault;
}

}  // namespace leveldb
