#include "leveldb/dumpfile.h"

#include "leveldb/env.h"
#include "support.h"

namespace leveldb {

namespace {

struct Target {
  WritableFile* file;
  Status status;
};

void AppendLine(void* target, const char* data, size_t size) noexcept {
  Target* to = static_cast<Target*>(target);
  if (to->status.ok()) to->status = to->file->Append(Slice(data, size));
}

}  // namespace

Status DumpFile(Env* env, const std::string& fname, WritableFile* dst) {
  const shim_env engine_env = EngineEnv(env);
  Target target = {dst, Status()};
  Status status = Take(shim_dump(&engine_env, Bytes(fname), &target, AppendLine));
  return status.ok() ? target.status : status;
}

}  // namespace leveldb
