// Private functions of LevelDB's environment that its tests call.
#include <memory>
#include <string>

#include "leveldb/env.h"
#include "util/env_posix_test_helper.h"

namespace leveldb {

// No public interface sets the limits of LevelDB's own environment.
void EnvPosixTestHelper::SetReadOnlyFDLimit(int) {}

void EnvPosixTestHelper::SetReadOnlyMMapLimit(int) {}

Status WriteStringToFileSync(Env* env, const Slice& data, const std::string& name) {
  WritableFile* opened = nullptr;
  Status status = env->NewWritableFile(name, &opened);
  if (!status.ok()) return status;
  const std::unique_ptr<WritableFile> file(opened);
  status = file->Append(data);
  if (status.ok()) status = file->Sync();
  return status.ok() ? file->Close() : status;
}

}  // namespace leveldb
