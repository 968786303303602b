// A recorded trace, as far as an engine can do what was called.

#ifndef LAB_COMMON_REPLAY_H_
#define LAB_COMMON_REPLAY_H_

#include <cstdint>
#include <string>

#include "data.h"
#include "meter.h"
#include "trace.h"

namespace lab {

template <typename Engine>
class Replay {
 public:
  using Session = typename Engine::Session;
  using Cursor = typename Engine::Cursor;

  Replay(const Trace& trace, const Pool& pool, Session* session)
      : trace_(trace), values_(pool, 0), session_(*session) {}

  // Puts the entries that were there when the trace began.
  void Load() {
    uint64_t collected = 0;
    uint64_t bytes = 0;
    for (size_t at = trace_.begin(); at < trace_.end();) {
      const Trace::Record record = trace_.Read(&at);
      if (record.kind != Trace::kEntry) break;
      session_.BatchPut(record.operation.key, values_.Cut(record.operation.size));
      collected++;
      bytes += record.operation.size;
      if (collected == kLoadedAtOnce || bytes >= kBytesAtOnce) {
        session_.Commit();
        collected = bytes = 0;
      }
    }
    if (collected > 0) session_.Commit();
  }

  // Does the first `most` operations of the trace.
  void Run(uint64_t most, Meter* meter) {
    uint64_t done = 0;
    for (size_t at = trace_.begin(); at < trace_.end();) {
      const Trace::Record record = trace_.Read(&at);
      if (record.operations == 0) continue;
      if (done >= most) break;
      if (!meter->GoesOn()) return meter->Truncate();
      const uint64_t bytes = Do(record, meter);
      meter->End(record.operations, bytes);
      done += record.operations;
    }
  }

 private:
  static constexpr uint64_t kLoadedAtOnce = 1000;
  static constexpr uint64_t kBytesAtOnce = 16 << 20;

  // Returns how many bytes went in or came out.
  uint64_t Do(const Trace::Record& record, Meter* meter) {
    const Trace::Operation& operation = record.operation;
    switch (record.kind) {
      case Trace::kEntry:
        return 0;
      case Trace::kPut:
        session_.Put(operation.key, values_.Cut(operation.size));
        return operation.key.size() + operation.size;
      case Trace::kDelete:
        session_.Delete(operation.key);
        return operation.key.size();
      case Trace::kBatch:
        return Batch(record);
      case Trace::kGet:
        if (!session_.Get(operation.key, &value_)) return 0;
        meter->Found();
        return operation.key.size() + value_.size();
      case Trace::kScan:
        return Scan(record, meter);
    }
    return 0;
  }

  uint64_t Batch(const Trace::Record& record) {
    uint64_t bytes = 0;
    size_t at = record.changes;
    for (uint64_t left = record.operations; left > 0; left--) {
      const Trace::Operation change = trace_.Change(&at);
      if (change.put) {
        session_.BatchPut(change.key, values_.Cut(change.size));
      } else {
        session_.BatchDelete(change.key);
      }
      bytes += change.key.size() + change.size;
    }
    session_.Commit();
    return bytes;
  }

  // Looks at the entry where a scan begins and at one after each step. Not every engine can begin
  // anywhere and go backwards; such a scan goes forwards for all of them.
  uint64_t Scan(const Trace::Record& record, Meter* meter) {
    Cursor cursor(&session_, record.steps == UINT64_MAX ? record.steps : record.steps + 1);
    const bool backwards = record.start == Trace::kLast;
    bool valid = record.start == Trace::kFirst ? cursor.First()
                 : backwards                   ? cursor.Last()
                                               : cursor.Seek(record.operation.key);
    uint64_t bytes = 0;
    for (uint64_t left = record.steps; valid; left--) {
      bytes += cursor.key().size() + cursor.value().size();
      meter->Found();
      if (left == 0) break;
      valid = backwards ? cursor.Prev() : cursor.Next();
    }
    return bytes;
  }

  const Trace& trace_;
  Values values_;
  Session& session_;
  std::string value_;
};

}  // namespace lab

#endif  // LAB_COMMON_REPLAY_H_
