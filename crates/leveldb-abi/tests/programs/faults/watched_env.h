// An environment over the default one that a fault can watch, make fail, hold back, and cut the
// power of.
#ifndef WATCHED_ENV_H_
#define WATCHED_ENV_H_

#include <leveldb/env.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

class WatchedEnv : public leveldb::EnvWrapper {
 public:
  enum Operation { kCreate, kAppend, kSync };
  // Called before each operation. If it returns an error, that is the operation's, and of an append
  // half is written.
  std::function<leveldb::Status(Operation operation, const std::string& file, size_t size)> before;
  // Whether background work waits until Release.
  std::atomic<bool> holding{false};

  WatchedEnv();
  // Waits for background work that has begun; work that is held back never runs.
  ~WatchedEnv() override;
  leveldb::Status NewWritableFile(const std::string& name, leveldb::WritableFile** result) override;
  leveldb::Status NewAppendableFile(const std::string& name,
                                    leveldb::WritableFile** result) override;
  leveldb::Status RenameFile(const std::string& from, const std::string& to) override;
  void Schedule(void (*function)(void*), void* argument) override;
  void Release();
  // Waits until all background work is done but what is held back. What a call schedules counts
  // when the call is over.
  void WaitForBackground();
  // The files of a directory as a power cut leaves them at worst: what was not synced is gone.
  // Names are durable.
  void CopyWhatIsDurable(const std::string& from, const std::string& to);

 private:
  class File;
  struct Job;
  leveldb::Status Opened(const std::string& name, leveldb::Status status, uint64_t durable,
                         leveldb::WritableFile** file);

  std::mutex mutex_;
  std::map<std::string, uint64_t> durable_;
  std::vector<Job*> held_;
  size_t jobs_ = 0;
  std::condition_variable jobs_are_done_;
};

#endif  // WATCHED_ENV_H_
