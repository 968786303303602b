#include "leveldb/status.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "support.h"

namespace leveldb {

namespace {

constexpr size_t kHeader = StatusAccess::kHeader;

uint32_t MessageLength(const char* state) {
  uint32_t length;
  std::memcpy(&length, state, sizeof(length));
  return length;
}

}  // namespace

Status::Status(Code code, const Slice& msg, const Slice& msg2) {
  const size_t separator = msg2.empty() ? 0 : 2;
  const uint32_t length = static_cast<uint32_t>(msg.size() + separator + msg2.size());
  char* state = new char[kHeader + length];
  std::memcpy(state, &length, sizeof(length));
  state[4] = static_cast<char>(code);
  char* at = state + kHeader;
  std::memcpy(at, msg.data(), msg.size());
  if (separator != 0) {
    std::memcpy(at + msg.size(), ": ", separator);
    std::memcpy(at + msg.size() + separator, msg2.data(), msg2.size());
  }
  state_ = state;
}

const char* Status::CopyState(const char* state) {
  const size_t size = kHeader + MessageLength(state);
  char* copy = new char[size];
  std::memcpy(copy, state, size);
  return copy;
}

std::string Status::ToString() const {
  std::string text;
  switch (code()) {
    case kOk:
      return "OK";
    case kNotFound:
      text = "NotFound: ";
      break;
    case kCorruption:
      text = "Corruption: ";
      break;
    case kNotSupported:
      text = "Not implemented: ";
      break;
    case kInvalidArgument:
      text = "Invalid argument: ";
      break;
    case kIOError:
      text = "IO error: ";
      break;
    default:
      text = "Unknown code(" + std::to_string(static_cast<int>(code())) + "): ";
      break;
  }
  const Slice message = StatusAccess::Message(*this);
  return text.append(message.data(), message.size());
}

Slice StatusAccess::Message(const Status& status) {
  if (status.ok()) return Slice();
  return Slice(status.state_ + kHeader, MessageLength(status.state_));
}

Status TakeFailure(shim_outcome outcome) {
  Status status = StatusAccess::Make(outcome.code, Slice(outcome.message, outcome.length));
  std::free(outcome.message);
  return status;
}

shim_outcome Give(const Status& status) noexcept {
  if (status.ok()) return {0, 0, nullptr};
  const Slice message = StatusAccess::Message(status);
  char* copy = static_cast<char*>(std::malloc(message.size() + 1));
  if (copy == nullptr) return {StatusAccess::Code(status), 0, nullptr};
  std::memcpy(copy, message.data(), message.size());
  return {StatusAccess::Code(status), static_cast<uint32_t>(message.size()), copy};
}

void AssignTo(void* string, const char* data, size_t size) noexcept {
  std::string* target = static_cast<std::string*>(string);
  // As assign does for bytes that are not the string's own, without the calls.
  if (target->size() < size) {
    target->assign(data, size);
    return;
  }
  target->resize(size);
  std::memcpy(&(*target)[0], data, size);
}

void AppendTo(void* string, const char* data, size_t size) noexcept {
  static_cast<std::string*>(string)->append(data, size);
}

}  // namespace leveldb
