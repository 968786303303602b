// The base classes of the environment, and how the engine calls an environment that is a program's
// own.
#include "leveldb/env.h"

#include <cstdarg>
#include <cstdint>

#include "support.h"

namespace leveldb {

Env::Env() = default;
Env::~Env() = default;
EnvWrapper::~EnvWrapper() = default;
SequentialFile::~SequentialFile() = default;
RandomAccessFile::~RandomAccessFile() = default;
WritableFile::~WritableFile() = default;
Logger::~Logger() = default;
FileLock::~FileLock() = default;

Status Env::NewAppendableFile(const std::string& fname, WritableFile** result) {
  *result = nullptr;
  return Status::NotSupported("NewAppendableFile", fname);
}

// Each name of a pair calls the other: an environment overrides one of them.
Status Env::RemoveFile(const std::string& fname) { return DeleteFile(fname); }
Status Env::DeleteFile(const std::string& fname) { return RemoveFile(fname); }
Status Env::RemoveDir(const std::string& dirname) { return DeleteDir(dirname); }
Status Env::DeleteDir(const std::string& dirname) { return RemoveDir(dirname); }

Status WriteStringToFile(Env* env, const Slice& data, const std::string& fname) {
  WritableFile* file;
  Status status = env->NewWritableFile(fname, &file);
  if (!status.ok()) return status;
  status = file->Append(data);
  if (status.ok()) status = file->Close();
  delete file;
  if (!status.ok()) env->RemoveFile(fname);
  return status;
}

Status ReadFileToString(Env* env, const std::string& fname, std::string* data) {
  data->clear();
  SequentialFile* file;
  Status status = env->NewSequentialFile(fname, &file);
  if (!status.ok()) return status;
  std::string buffer(8192, '\0');
  for (;;) {
    Slice part;
    status = file->Read(buffer.size(), &part, &buffer[0]);
    if (!status.ok() || part.empty()) break;
    data->append(part.data(), part.size());
  }
  delete file;
  return status;
}

void Log(Logger* info_log, const char* format, ...) {
  if (info_log == nullptr) return;
  std::va_list arguments;
  va_start(arguments, format);
  info_log->Logv(format, arguments);
  va_end(arguments);
}

namespace {

Env* AsEnv(void* env) { return static_cast<Env*>(env); }

WritableFile* AsFile(void* file) { return static_cast<WritableFile*>(file); }

// Stores a new object where the engine wants it, unless there is none.
template <typename T>
shim_outcome GiveObject(const Status& status, T* object, void** place) {
  *place = object;
  if (status.ok() && object == nullptr)
    return Give(Status::IOError("the environment returned OK and no object"));
  return Give(status);
}

// The engine tells a missing file from one that cannot be read. Some environments, LevelDB's own in
// memory among them, return IOError for both.
shim_outcome GiveFor(Env* env, const std::string& name, const Status& status) {
  if (status.IsIOError() && !env->FileExists(name))
    return Give(Status::NotFound(StatusAccess::Message(status)));
  return Give(status);
}

shim_outcome FileAppend(void* file, shim_bytes data) noexcept {
  Status status = AsFile(file)->Append(AsSlice(data));
  if (status.ok()) status = AsFile(file)->Flush();
  return Give(status);
}

shim_outcome FileSync(void* file) noexcept { return Give(AsFile(file)->Sync()); }

shim_outcome FileClose(void* file) noexcept { return Give(AsFile(file)->Close()); }

void FileRelease(void* file) noexcept { delete AsFile(file); }

shim_outcome RandomRead(const void* file, uint64_t offset, char* buffer, size_t size,
                        size_t* got) noexcept {
  Slice result;
  const Status status =
      static_cast<const RandomAccessFile*>(file)->Read(offset, size, &result, buffer);
  *got = 0;
  if (!status.ok()) return Give(status);
  if (result.size() > size) return Give(Status::IOError("a read returned more than was asked for"));
  // The bytes may be anywhere: a file in memory returns its own.
  if (result.data() != buffer && !result.empty())
    std::memmove(buffer, result.data(), result.size());
  *got = result.size();
  return Give(status);
}

void RandomRelease(void* file) noexcept { delete static_cast<RandomAccessFile*>(file); }

shim_outcome OpenRandom(void* env, shim_bytes path, void** file, uint64_t* size) noexcept {
  const std::string name = AsString(path);
  // Before the file is opened: what is appended in between may lie behind what an environment maps.
  const Status sized = AsEnv(env)->GetFileSize(name, size);
  RandomAccessFile* opened = nullptr;
  Status status = AsEnv(env)->NewRandomAccessFile(name, &opened);
  if (status.ok() && !sized.ok()) {
    delete opened;
    opened = nullptr;
    status = sized;
  }
  if (!status.ok()) return GiveFor(AsEnv(env), name, status);
  return GiveObject(status, opened, file);
}

shim_outcome Create(void* env, shim_bytes path, void** file) noexcept {
  WritableFile* opened = nullptr;
  const Status status = AsEnv(env)->NewWritableFile(AsString(path), &opened);
  return GiveObject(status, opened, file);
}

shim_outcome OpenAppend(void* env, shim_bytes path, void** file) noexcept {
  WritableFile* opened = nullptr;
  const Status status = AsEnv(env)->NewAppendableFile(AsString(path), &opened);
  return GiveObject(status, opened, file);
}

uint8_t Exists(void* env, shim_bytes path) noexcept {
  return AsEnv(env)->FileExists(AsString(path));
}

shim_outcome List(void* env, shim_bytes dir, void* target, shim_put put) noexcept {
  std::vector<std::string> children;
  const std::string name = AsString(dir);
  const Status status = AsEnv(env)->GetChildren(name, &children);
  if (!status.ok()) return GiveFor(AsEnv(env), name, status);
  for (const std::string& child : children) {
    if (child != "." && child != "..") put(target, child.data(), child.size());
  }
  return Give(status);
}

shim_outcome Remove(void* env, shim_bytes path) noexcept {
  const std::string name = AsString(path);
  return GiveFor(AsEnv(env), name, AsEnv(env)->RemoveFile(name));
}

// As LevelDB does, without looking at the result: the directory may exist, and if it could not be
// made the lock fails.
shim_outcome CreateDir(void* env, shim_bytes dir) noexcept {
  AsEnv(env)->CreateDir(AsString(dir));
  return Give(Status());
}

shim_outcome RemoveDir(void* env, shim_bytes dir) noexcept {
  return Give(AsEnv(env)->RemoveDir(AsString(dir)));
}

shim_outcome FileSize(void* env, shim_bytes path, uint64_t* size) noexcept {
  const std::string name = AsString(path);
  return GiveFor(AsEnv(env), name, AsEnv(env)->GetFileSize(name, size));
}

shim_outcome Rename(void* env, shim_bytes from, shim_bytes to) noexcept {
  const std::string source = AsString(from);
  return GiveFor(AsEnv(env), source, AsEnv(env)->RenameFile(source, AsString(to)));
}

shim_outcome Lock(void* env, shim_bytes path, void** lock) noexcept {
  FileLock* held = nullptr;
  const Status status = AsEnv(env)->LockFile(AsString(path), &held);
  // None is a lock, too: of an environment that needs no locks.
  *lock = held;
  return Give(status);
}

void Unlock(void* env, void* lock) noexcept {
  if (lock != nullptr) AsEnv(env)->UnlockFile(static_cast<FileLock*>(lock));
}

void Schedule(void* env, void (*function)(void*), void* argument) noexcept {
  AsEnv(env)->Schedule(function, argument);
}

uint64_t NowMicros(void* env) noexcept { return AsEnv(env)->NowMicros(); }

void Sleep(void* env, uint64_t micros) noexcept {
  AsEnv(env)->SleepForMicroseconds(micros > INT32_MAX ? INT32_MAX : static_cast<int>(micros));
}

void LogLine(void* logger, const char* message, size_t size) noexcept {
  Log(static_cast<Logger*>(logger), "%.*s", static_cast<int>(size > INT32_MAX ? INT32_MAX : size),
      message);
}

shim_outcome NewLogger(void* env, shim_bytes path, shim_logger* logger) noexcept {
  Logger* made = nullptr;
  const Status status = AsEnv(env)->NewLogger(AsString(path), &made);
  *logger = {made, LogLine};
  return Give(status);
}

void ReleaseLogger(void* logger) noexcept { delete static_cast<Logger*>(logger); }

}  // namespace

const shim_file_calls kFileCalls = {FileAppend, FileSync, FileClose, FileRelease};
const shim_random_calls kRandomCalls = {RandomRead, RandomRelease};

namespace {

const shim_env_calls kEnvCalls = {
    OpenRandom,
    Create,
    OpenAppend,
    Exists,
    List,
    Remove,
    CreateDir,
    RemoveDir,
    FileSize,
    Rename,
    Lock,
    Unlock,
    Schedule,
    NowMicros,
    Sleep,
    NewLogger,
    ReleaseLogger,
    {FileAppend, FileSync, FileClose, FileRelease},
    {RandomRead, RandomRelease},
};

}  // namespace

shim_env EngineEnv(Env* env) {
  if (env == nullptr || env == Env::Default()) return {nullptr, nullptr};
  return {env, &kEnvCalls};
}

shim_logger EngineLogger(Logger* logger) { return {logger, LogLine}; }

}  // namespace leveldb
