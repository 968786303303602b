// Shared by the C++ side: statuses from outcomes and back, bytes, and options for the engine.
#ifndef TERRACE_LEVELDB_ABI_SUPPORT_H_
#define TERRACE_LEVELDB_ABI_SUPPORT_H_

#include <string>

#include "engine.h"
#include "leveldb/options.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace leveldb {

class Iterator;

// Makes and reads Status by its code, which is private.
struct StatusAccess {
  // The bytes behind a status begin with the length of its message and its code.
  static constexpr size_t kHeader = 5;

  static Status Make(int code, const Slice& message) {
    return Status(static_cast<Status::Code>(code), message, Slice());
  }
  static int Code(const Status& status) { return static_cast<int>(status.code()); }
  // NotFound without a message: no key, rather than no file.
  static bool IsAbsence(const shim_outcome& outcome) {
    return outcome.code == Status::kNotFound && outcome.message == nullptr;
  }
  static Status Absent() {
    // A length of 0, and the code.
    char* state = new char[kHeader]();
    state[kHeader - 1] = static_cast<char>(Status::kNotFound);
    Status status;
    status.state_ = state;
    return status;
  }
  // The message alone.
  static Slice Message(const Status& status);
};

// A failure as a status; frees its message.
Status TakeFailure(shim_outcome outcome);

// The outcome as a status.
inline Status Take(shim_outcome outcome) {
  if (outcome.code == 0) return Status();
  return StatusAccess::IsAbsence(outcome) ? StatusAccess::Absent() : TakeFailure(outcome);
}

// The status as an outcome for the engine.
shim_outcome Give(const Status& status) noexcept;

inline shim_bytes Bytes(const Slice& slice) { return {slice.data(), slice.size()}; }
inline Slice AsSlice(shim_bytes bytes) { return Slice(bytes.data, bytes.size); }
inline std::string AsString(shim_bytes bytes) { return std::string(bytes.data, bytes.size); }

// A shim_put that replaces, and one that appends to, a std::string.
void AssignTo(void* string, const char* data, size_t size) noexcept;
void AppendTo(void* string, const char* data, size_t size) noexcept;

// The address of an object's table of virtual functions. It tells whether an object is of a final
// class of ours; dynamic_cast would ask objects of a program that was built without RTTI for what
// they do not have.
inline const void* TableOf(const void* object) { return *static_cast<const void* const*>(object); }

// The engine's copy of options. Valid as long as the objects that they point to.
shim_options EngineOptions(const Options& options);

// Parts of it that live in other files. Null means the default.
shim_comparator EngineComparator(const Comparator* comparator);
shim_filter EngineFilter(const FilterPolicy* policy);
shim_env EngineEnv(Env* env);
shim_logger EngineLogger(Logger* logger);
const shim_cache* EngineCache(Cache* cache);
// Unless the cache is from NewLRUCache.
shim_custom_cache EngineCustomCache(Cache* cache);

// How the engine calls files that C++ owns.
extern const shim_file_calls kFileCalls;
extern const shim_random_calls kRandomCalls;

// An iterator over the engine's cursor, which it owns. What `keep` leads to is the caller's.
Iterator* NewEngineIterator(shim_cursor* cursor);

}  // namespace leveldb

#endif
