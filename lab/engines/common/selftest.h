// Random operations whose results are folded into one number, which is the same for every engine
// that is right.

#ifndef LAB_COMMON_SELFTEST_H_
#define LAB_COMMON_SELFTEST_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "benchmark.h"
#include "data.h"
#include "engine.h"
#include "random.h"
#include "settings.h"

namespace lab {

// FNV-1a over what reads return.
class Digest {
 public:
  void Missing() { Byte(0); }
  void Value(std::string_view value) {
    Byte(1);
    Bytes(value);
  }
  void Entry(std::string_view key, std::string_view value) {
    Bytes(key);
    Bytes(value);
  }
  void EndOfScan() { Byte(2); }

  std::string Text() const {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash_));
    return text;
  }

 private:
  void Byte(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }
  void Bytes(std::string_view bytes) {
    for (int shift = 0; shift < 32; shift += 8) Byte(static_cast<uint8_t>(bytes.size() >> shift));
    for (const char c : bytes) Byte(static_cast<uint8_t>(c));
  }

  uint64_t hash_ = 0xcbf29ce484222325u;
};

template <typename Engine>
class SelfTest {
 public:
  static constexpr uint64_t kPasses = 2;
  static constexpr uint64_t kOperations = 10000;

  SelfTest(const Settings& settings, const Pool& pool)
      : pool_(pool.bytes()),
        random_(settings.seed, FindBenchmark("selftest").number, 0),
        key_(settings.key_size) {}

  // On an empty database that is open for `use`, and is so again when it returns.
  std::string Run(Engine* engine, const Use& use) {
    for (uint64_t pass = 0; pass < kPasses; pass++) {
      if (pass > 0) {
        engine->Close();
        engine->Open(use);
      }
      typename Engine::Session session(engine);
      for (uint64_t i = 0; i < kOperations; i++) Operation(&session);
      Whole<true>(&session);
      Whole<false>(&session);
    }
    return digest_.Text();
  }

 private:
  using Session = typename Engine::Session;
  using Cursor = typename Engine::Cursor;
  static constexpr uint64_t kKeys = 5000;
  static constexpr uint64_t kSteps = 5;

  void Operation(Session* session) {
    const uint64_t what = random_.Next() % 10;
    const uint64_t key = random_.Next() % kKeys;
    if (what < 5) {
      session->Put(key_.Set(key), NextValue());
    } else if (what < 7) {
      session->Delete(key_.Set(key));
    } else if (what == 7) {
      Batch(session);
    } else if (what == 8) {
      if (session->Get(key_.Set(key), &value_)) {
        digest_.Value(value_);
      } else {
        digest_.Missing();
      }
    } else {
      Seek(session, key_.Set(key));
    }
  }

  std::string_view NextValue() {
    const uint64_t size = random_.Next() % 300;
    return pool_.substr(random_.Next() % 1000000, size);
  }

  void Batch(Session* session) {
    for (int n = 0; n < 10; n++) {
      const bool removal = random_.Next() % 3 == 0;
      const std::string_view key = key_.Set(random_.Next() % kKeys);
      if (removal) {
        session->BatchDelete(key);
      } else {
        session->BatchPut(key, NextValue());
      }
    }
    session->Commit();
  }

  void Seek(Session* session, std::string_view key) {
    Cursor cursor(session, kSteps);
    bool valid = cursor.Seek(key);
    for (uint64_t step = 0; step < kSteps; step++) {
      if (!valid) return digest_.EndOfScan();
      digest_.Entry(cursor.key(), cursor.value());
      if (step + 1 < kSteps) valid = cursor.Next();
    }
  }

  template <bool kForwards>
  void Whole(Session* session) {
    Cursor cursor(session, UINT64_MAX);
    for (bool valid = kForwards ? cursor.First() : cursor.Last(); valid;
         valid = kForwards ? cursor.Next() : cursor.Prev()) {
      digest_.Entry(cursor.key(), cursor.value());
    }
    digest_.EndOfScan();
  }

  std::string_view pool_;
  Random random_;
  Key key_;
  std::string value_;
  Digest digest_;
};

}  // namespace lab

#endif  // LAB_COMMON_SELFTEST_H_
