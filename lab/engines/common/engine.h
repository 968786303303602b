// An engine program: a class with the members below, given to lab::Main
// (driver.h). The driver is a template over it, so that a call costs what the engine's own call
// costs; nothing here is virtual.
//
//     class Engine {
//      public:
//       static Description Describe(const Settings&);   // of the variant that the settings name
//       explicit Engine(const Settings&);
//       void Open(const Use&);      // opens the database, creating it if the directory holds none
//       void Adapt(const Use&);     // makes an open database ready for another use
//       void Close();
//       void Destroy();             // of a closed database; the directory is emptied afterwards
//       void Compact();             // the whole range
//       void WaitCompact();              // all work that was put off; nothing is left in the
//       process that a crash loses. Or it returns, as uint64_t, the nanoseconds at its end in which
//       it only saw that there was nothing more to do
//
//       class Session {             // what one thread works with; made and used by that thread
//        public:
//         explicit Session(Engine*);
//         void Put(std::string_view key, std::string_view value);
//         void Delete(std::string_view key);          // of a key that may be missing
//         bool Get(std::string_view key, std::string* value);
//         void BatchPut(std::string_view key, std::string_view value);
//         void BatchDelete(std::string_view key);
//         void Commit();                              // the batch: all of it or nothing
//       };
//
//       class Cursor {              // a scan of one session; the session does nothing else
//       meanwhile
//        public:
//         Cursor(Session*, uint64_t most);            // no more than `most` entries will be looked
//         at bool First();  bool Last();  bool Seek(std::string_view key);  // whether it stands on
//         an entry bool Next();   // after First, Seek, Next bool Prev();   // after Last, Prev
//         std::string_view key() const;  std::string_view value() const; // until the next step
//       };
//
//       class Loader {              // puts keys in increasing order into an empty database
//        public:
//         explicit Loader(Session*);
//         void Put(std::string_view key, std::string_view value);
//         void Finish();
//       };
//     };
//
// Several sessions work at the same time. Open, Adapt, Close, Destroy, Compact and WaitCompact are
// called while there is no session. Whatever fails throws Failure. Every write is as durable as Use
// asks when the call returns.

#ifndef LAB_COMMON_ENGINE_H_
#define LAB_COMMON_ENGINE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "failure.h"

namespace lab {

// The next use of a database.
struct Use {
  uint64_t sessions = 1;
  // Writes are on the disk when they return.
  bool synchronous = false;
  // Seconds until an entry that is put expires; 0 for never. Set only for engines that have kExpires.
  uint64_t time_to_live = 0;
};

// What a level of an LSM tree holds in files.
struct Level {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

// What an engine may have beside the above:
//
//   std::vector<Level> Levels();                // of its LSM tree, from level 0
//   static constexpr bool kExpires = true;      // it opens a database with a time_to_live
//   void OpenKeyspaces(uint64_t count);         // keyspaces from 0 to below count; creates them
//   void Session::PutIn(uint64_t keyspace, std::string_view key, std::string_view value);
//   bool Session::GetIn(uint64_t keyspace, std::string_view key, std::string* value);
//   void Session::DeleteRange(std::string_view first, std::string_view end);
//
//   void Session::MultiGet(const std::vector<std::string_view>& keys, Show show);
//       // calls show(key, value) for each key that has a value
//
// Without DeleteRange the keys of a range are deleted one by one, in a batch. Without MultiGet keys
// are got one after the other.
template <typename Engine>
concept Expiring = Engine::kExpires;

template <typename Engine>
concept HasLevels = requires(Engine engine) { engine.Levels(); };

template <typename Engine>
concept HasKeyspaces = requires(Engine engine) { engine.OpenKeyspaces(1); };

template <typename Session>
concept DeletesRanges = requires(Session session, std::string_view key) {
  session.DeleteRange(key, key);
};

template <typename Session>
concept GetsMany = requires(Session session, const std::vector<std::string_view>& keys) {
  session.MultiGet(keys, [](std::string_view, std::string_view) {});
};

// The Loader of an engine that has no way to load other than Put.
template <typename Session>
class NoLoader {
 public:
  explicit NoLoader(Session*) { throw Failure("there is no bulk load"); }
  void Put(std::string_view, std::string_view) {}
  void Finish() {}
};

}  // namespace lab

#endif  // LAB_COMMON_ENGINE_H_
