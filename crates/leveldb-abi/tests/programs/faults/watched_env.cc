#include "watched_env.h"

#include <sys/stat.h>

#include "faults.h"

using namespace leveldb;

class WatchedEnv::File : public WritableFile {
 public:
  File(WatchedEnv* env, const std::string& name, WritableFile* base, uint64_t size)
      : env_(env), name_(name), base_(base), size_(size) {}
  ~File() override { delete base_; }

  Status Append(const Slice& data) override {
    const Status refused = Ask(kAppend, data.size());
    const Slice written(data.data(), refused.ok() ? data.size() : data.size() / 2);
    const Status status = base_->Append(written);
    size_ += written.size();
    return refused.ok() ? status : refused;
  }
  Status Close() override { return base_->Close(); }
  Status Flush() override { return base_->Flush(); }
  Status Sync() override {
    Status status = Ask(kSync, 0);
    if (status.ok()) status = base_->Sync();
    if (!status.ok()) return status;
    std::lock_guard<std::mutex> lock(env_->mutex_);
    env_->durable_[name_] = size_;
    return status;
  }

 private:
  Status Ask(Operation operation, size_t size) {
    return env_->before ? env_->before(operation, name_, size) : Status::OK();
  }

  WatchedEnv* env_;
  std::string name_;
  WritableFile* base_;
  uint64_t size_;
};

WatchedEnv::WatchedEnv() : EnvWrapper(Env::Default()) {}

WatchedEnv::~WatchedEnv() { WaitForBackground(); }

Status WatchedEnv::Opened(const std::string& name, Status status, uint64_t size,
                          WritableFile** file) {
  if (!status.ok()) return status;
  *file = new File(this, name, *file, size);
  std::lock_guard<std::mutex> lock(mutex_);
  durable_[name] = size;
  return status;
}

Status WatchedEnv::NewWritableFile(const std::string& name, WritableFile** result) {
  *result = nullptr;
  if (before) {
    const Status refused = before(kCreate, name, 0);
    if (!refused.ok()) return refused;
  }
  return Opened(name, target()->NewWritableFile(name, result), 0, result);
}

Status WatchedEnv::NewAppendableFile(const std::string& name, WritableFile** result) {
  uint64_t size = 0;
  target()->GetFileSize(name, &size);
  return Opened(name, target()->NewAppendableFile(name, result), size, result);
}

Status WatchedEnv::RenameFile(const std::string& from, const std::string& to) {
  const Status status = target()->RenameFile(from, to);
  std::lock_guard<std::mutex> lock(mutex_);
  if (status.ok()) durable_[to] = durable_[from];
  return status;
}

// A piece of background work on its way through the base environment, which says nothing when it is
// done.
struct WatchedEnv::Job {
  WatchedEnv* env;
  void (*function)(void*);
  void* argument;

  static void Run(void* job) {
    const std::unique_ptr<Job> self(static_cast<Job*>(job));
    self->function(self->argument);
    std::lock_guard<std::mutex> lock(self->env->mutex_);
    self->env->jobs_--;
    self->env->jobs_are_done_.notify_all();
  }
};

void WatchedEnv::Schedule(void (*function)(void*), void* argument) {
  std::lock_guard<std::mutex> lock(mutex_);
  jobs_++;
  Job* const job = new Job{this, function, argument};
  if (holding) {
    held_.push_back(job);
  } else {
    target()->Schedule(Job::Run, job);
  }
}

void WatchedEnv::Release() {
  std::lock_guard<std::mutex> lock(mutex_);
  holding = false;
  for (Job* job : held_) target()->Schedule(Job::Run, job);
  held_.clear();
}

void WatchedEnv::WaitForBackground() {
  std::unique_lock<std::mutex> lock(mutex_);
  jobs_are_done_.wait(lock, [this] { return jobs_ == held_.size(); });
}

void WatchedEnv::CopyWhatIsDurable(const std::string& from, const std::string& to) {
  mkdir(to.c_str(), 0777);
  std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& path : Files(from, "")) {
    const auto durable = durable_.find(path);
    if (durable == durable_.end()) continue;
    Replace(to + path.substr(from.size()), Contents(path).substr(0, durable->second));
  }
}
