// The batch is its bytes: see leveldb/write_batch.h for the form. A key and value that no table
// could hold leave a mark, on which every write of the batch fails.
#include "leveldb/write_batch.h"

#include <cstdint>
#include <cstring>

#include "leveldb/slice.h"

namespace leveldb {

namespace {

constexpr size_t kHeader = 12;
constexpr size_t kCountAt = 8;
constexpr char kDeletion = 0;
constexpr char kValue = 1;
// No operation has this kind.
constexpr char kTooLarge = 0x7e;
// MAX_ENTRY_SIZE of the engine without the eight bytes of a tag.
constexpr uint64_t kLargest = UINT32_MAX - (8u << 20) - 8;

bool IsTooLarge(uint64_t key, uint64_t value) { return key > kLargest || value > kLargest - key; }

uint32_t Count(const std::string& rep) {
  const unsigned char* at = reinterpret_cast<const unsigned char*>(rep.data()) + kCountAt;
  return at[0] | at[1] << 8 | at[2] << 16 | static_cast<uint32_t>(at[3]) << 24;
}

void SetCount(std::string* rep, uint32_t count) {
  for (int byte = 0; byte < 4; byte++)
    (*rep)[kCountAt + byte] = static_cast<char>(count >> (8 * byte));
}

void AppendPrefixed(std::string* rep, const Slice& part) {
  uint32_t rest = static_cast<uint32_t>(part.size());
  while (rest >= 0x80) {
    rep->push_back(static_cast<char>(rest | 0x80));
    rest >>= 7;
  }
  rep->push_back(static_cast<char>(rest));
  rep->append(part.data(), part.size());
}

bool TakePrefixed(Slice* input, Slice* part) {
  uint64_t length = 0;
  for (int shift = 0; shift <= 28; shift += 7) {
    if (input->empty()) return false;
    const unsigned char byte = static_cast<unsigned char>((*input)[0]);
    input->remove_prefix(1);
    length |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      if (length > input->size()) return false;
      *part = Slice(input->data(), length);
      input->remove_prefix(length);
      return true;
    }
  }
  return false;
}

}  // namespace

WriteBatch::Handler::~Handler() = default;

WriteBatch::WriteBatch() { Clear(); }

WriteBatch::~WriteBatch() = default;

void WriteBatch::Clear() {
  rep_.clear();
  rep_.resize(kHeader);
}

size_t WriteBatch::ApproximateSize() const { return rep_.size(); }

void WriteBatch::Put(const Slice& key, const Slice& value) {
  SetCount(&rep_, Count(rep_) + 1);
  if (IsTooLarge(key.size(), value.size())) {
    rep_.push_back(kTooLarge);
    return;
  }
  rep_.push_back(kValue);
  AppendPrefixed(&rep_, key);
  AppendPrefixed(&rep_, value);
}

void WriteBatch::Delete(const Slice& key) {
  SetCount(&rep_, Count(rep_) + 1);
  if (IsTooLarge(key.size(), 0)) {
    rep_.push_back(kTooLarge);
    return;
  }
  rep_.push_back(kDeletion);
  AppendPrefixed(&rep_, key);
}

void WriteBatch::Append(const WriteBatch& source) {
  const uint32_t count = Count(rep_) + Count(source.rep_);
  // A string that is appended to itself is copied first by append.
  rep_.append(source.rep_, kHeader, std::string::npos);
  SetCount(&rep_, count);
}

Status WriteBatch::Iterate(Handler* handler) const {
  Slice input(rep_);
  if (input.size() < kHeader) return Status::Corruption("malformed WriteBatch (too small)");
  input.remove_prefix(kHeader);
  uint32_t found = 0;
  while (!input.empty()) {
    found++;
    const char kind = input[0];
    input.remove_prefix(1);
    Slice key, value;
    switch (kind) {
      case kValue:
        if (!TakePrefixed(&input, &key) || !TakePrefixed(&input, &value)) {
          return Status::Corruption("bad WriteBatch Put");
        }
        if (handler != nullptr) handler->Put(key, value);
        break;
      case kDeletion:
        if (!TakePrefixed(&input, &key)) return Status::Corruption("bad WriteBatch Delete");
        if (handler != nullptr) handler->Delete(key);
        break;
      case kTooLarge:
        return Status::InvalidArgument("a key and value of 4 GiB less 8 MiB or more");
      default:
        return Status::Corruption("unknown WriteBatch tag");
    }
  }
  return found == Count(rep_) ? Status() : Status::Corruption("WriteBatch has wrong count");
}

}  // namespace leveldb
