#include "leveldb/helpers/memenv.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "leveldb/env.h"
#include "support.h"

namespace leveldb {

namespace {

// A file's bytes, which any number of handles share. They stay where they are: readers return
// pointers into them.
class FileState {
 public:
  uint64_t size() const {
    std::lock_guard<std::mutex> guard(mutex_);
    return size_;
  }

  void Truncate() {
    std::lock_guard<std::mutex> guard(mutex_);
    blocks_.clear();
    size_ = 0;
  }

  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const {
    std::lock_guard<std::mutex> guard(mutex_);
    if (offset > size_) return Status::IOError("Offset greater than file size.");
    const size_t wanted = std::min<uint64_t>(n, size_ - offset);
    for (size_t done = 0; done < wanted;) {
      const uint64_t at = offset + done;
      const size_t part = std::min<uint64_t>(wanted - done, kBlock - at % kBlock);
      std::memcpy(scratch + done, blocks_[at / kBlock].get() + at % kBlock, part);
      done += part;
    }
    *result = Slice(scratch, wanted);
    return Status();
  }

  void Append(const Slice& data) {
    std::lock_guard<std::mutex> guard(mutex_);
    for (size_t done = 0; done < data.size();) {
      const size_t at = size_ % kBlock;
      if (at == 0) blocks_.emplace_back(new char[kBlock]);
      const size_t part = std::min(data.size() - done, kBlock - at);
      std::memcpy(blocks_.back().get() + at, data.data() + done, part);
      done += part;
      size_ += part;
    }
  }

 private:
  static constexpr size_t kBlock = 8192;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  uint64_t size_ = 0;
};

using File = std::shared_ptr<FileState>;

class MemSequentialFile final : public SequentialFile {
 public:
  explicit MemSequentialFile(File file) : file_(std::move(file)) {}

  Status Read(size_t n, Slice* result, char* scratch) override {
    Status status = file_->Read(at_, n, result, scratch);
    if (status.ok()) at_ += result->size();
    return status;
  }

  Status Skip(uint64_t n) override {
    const uint64_t size = file_->size();
    if (at_ > size) return Status::IOError("pos_ > file_->Size()");
    at_ += std::min(n, size - at_);
    return Status();
  }

 private:
  const File file_;
  uint64_t at_ = 0;
};

class MemRandomAccessFile final : public RandomAccessFile {
 public:
  explicit MemRandomAccessFile(File file) : file_(std::move(file)) {}
  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const override {
    return file_->Read(offset, n, result, scratch);
  }

 private:
  const File file_;
};

class MemWritableFile final : public WritableFile {
 public:
  explicit MemWritableFile(File file) : file_(std::move(file)) {}
  Status Append(const Slice& data) override {
    file_->Append(data);
    return Status();
  }
  Status Close() override { return Status(); }
  Status Flush() override { return Status(); }
  Status Sync() override { return Status(); }

 private:
  const File file_;
};

class SilentLogger final : public Logger {
 public:
  void Logv(const char*, std::va_list) override {}
};

// Knows files by their whole names; directories come and go without a trace.
class InMemoryEnv final : public EnvWrapper {
 public:
  explicit InMemoryEnv(Env* base) : EnvWrapper(base) {}

  Status NewSequentialFile(const std::string& name, SequentialFile** result) override {
    return OpenAs<MemSequentialFile>(name, result);
  }

  Status NewRandomAccessFile(const std::string& name, RandomAccessFile** result) override {
    return OpenAs<MemRandomAccessFile>(name, result);
  }

  // What had the name keeps its bytes only for those who have it open... which LevelDB's does not
  // grant either: the file is the same and becomes empty.
  Status NewWritableFile(const std::string& name, WritableFile** result) override {
    std::lock_guard<std::mutex> guard(mutex_);
    File& file = files_[name];
    if (file == nullptr) {
      file = std::make_shared<FileState>();
    } else {
      file->Truncate();
    }
    *result = new MemWritableFile(file);
    return Status();
  }

  Status NewAppendableFile(const std::string& name, WritableFile** result) override {
    std::lock_guard<std::mutex> guard(mutex_);
    File& file = files_[name];
    if (file == nullptr) file = std::make_shared<FileState>();
    *result = new MemWritableFile(file);
    return Status();
  }

  bool FileExists(const std::string& name) override {
    std::lock_guard<std::mutex> guard(mutex_);
    return files_.count(name) != 0;
  }

  Status GetChildren(const std::string& dir, std::vector<std::string>* result) override {
    std::lock_guard<std::mutex> guard(mutex_);
    result->clear();
    const std::string prefix = dir + "/";
    for (auto at = files_.lower_bound(prefix); at != files_.end(); ++at) {
      if (at->first.compare(0, prefix.size(), prefix) != 0) break;
      if (at->first.size() > prefix.size()) result->push_back(at->first.substr(prefix.size()));
    }
    return Status();
  }

  Status RemoveFile(const std::string& name) override {
    std::lock_guard<std::mutex> guard(mutex_);
    return files_.erase(name) == 0 ? Missing(name) : Status();
  }

  Status CreateDir(const std::string&) override { return Status(); }
  Status RemoveDir(const std::string&) override { return Status(); }

  Status GetFileSize(const std::string& name, uint64_t* size) override {
    std::lock_guard<std::mutex> guard(mutex_);
    const auto at = files_.find(name);
    if (at == files_.end()) return Missing(name);
    *size = at->second->size();
    return Status();
  }

  Status RenameFile(const std::string& from, const std::string& to) override {
    std::lock_guard<std::mutex> guard(mutex_);
    const auto at = files_.find(from);
    if (at == files_.end()) return Missing(from);
    File file = at->second;
    files_.erase(at);
    files_[to] = std::move(file);
    return Status();
  }

  Status LockFile(const std::string&, FileLock** lock) override {
    *lock = new FileLock;
    return Status();
  }

  Status UnlockFile(FileLock* lock) override {
    delete lock;
    return Status();
  }

  Status GetTestDirectory(std::string* path) override {
    *path = "/test";
    return Status();
  }

  Status NewLogger(const std::string&, Logger** result) override {
    *result = new SilentLogger;
    return Status();
  }

 private:
  static Status Missing(const std::string& name) { return Status::IOError(name, "File not found"); }

  template <typename Handle, typename Result>
  Status OpenAs(const std::string& name, Result** result) {
    std::lock_guard<std::mutex> guard(mutex_);
    const auto at = files_.find(name);
    *result = at == files_.end() ? nullptr : new Handle(at->second);
    return at == files_.end() ? Missing(name) : Status();
  }

  std::mutex mutex_;
  std::map<std::string, File> files_;
};

}  // namespace

Env* NewMemEnv(Env* base_env) { return new InMemoryEnv(base_env); }

}  // namespace leveldb
