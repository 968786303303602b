// An engine program's main: reads the command line, runs the benchmarks in their order, prints a
// line for each. What they do is specified in lab/WORKLOADS.md; what an engine provides, in
// engine.h.

#ifndef LAB_COMMON_DRIVER_H_
#define LAB_COMMON_DRIVER_H_

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "benchmark.h"
#include "crew.h"
#include "data.h"
#include "description.h"
#include "directory.h"
#include "engine.h"
#include "operations.h"
#include "parent.h"
#include "replay.h"
#include "report.h"
#include "selftest.h"
#include "settings.h"
#include "trace.h"

namespace lab {

template <typename Engine>
class Driver {
 public:
  explicit Driver(const Settings& settings)
      : settings_(settings),
        description_(Engine::Describe(settings)),
        pool_(settings.seed, std::max(settings.value_size, settings.value_size_max)),
        engine_(settings),
        newest_(settings.num - 1) {}

  ~Driver() {
    try {
      Close();
    } catch (const Failure&) {
      // Something has failed before, and that is what is reported.
    }
  }

  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  void Close() {
    if (!open_) return;
    open_ = false;
    engine_.Close();
  }

  void Run(const Benchmark& benchmark) {
    const std::string id =
        description_.engine + (settings_.variant.empty() ? "" : "-" + settings_.variant);
    if (const std::string why = Missing(benchmark); !why.empty()) {
      return Print(Json()
                       .Text("benchmark", benchmark.name)
                       .Text("engine", id)
                       .Text("unsupported", why)
                       .Line(),
                   std::string(benchmark.name) + ": " + why);
    }
    Prepare(benchmark);
    Result result;
    result.benchmark = benchmark.name;
    result.engine = id;
    if (benchmark.ReportsFound()) result.found = 0;
    if constexpr (HasLevels<Engine>) {
      if (!benchmark.empty) result.levels = engine_.Levels();
    }
    double limit = settings_.time_limit;
    if (benchmark.timed)
      limit = limit > 0 ? std::min(limit, settings_.duration) : settings_.duration;
    Crew crew(benchmark.name, limit, settings_.interval);
    if (benchmark.WholeDatabase()) {
      const auto work = [&](uint64_t, Meter* meter, const auto& start) {
        OnWhole(benchmark, meter, start, &result);
      };
      crew.Run(1, work, nullptr, &result);
    } else {
      RunThreads(benchmark, &crew, &result);
    }
    result.truncated |= benchmark.timed && limit < settings_.duration;
    result.disk_bytes = DiskBytes(settings_.db);
    Print(result.JsonLine(), result.TextLine());
  }

 private:
  // The seconds until an entry that expires does.
  static constexpr uint64_t kTimeToLive = 1;

  // Why the engine cannot run a benchmark, if it cannot.
  std::string Missing(const Benchmark& benchmark) const {
    const auto why = description_.unsupported.find(benchmark.name);
    if (why != description_.unsupported.end()) return why->second;
    if (benchmark.kind == Kind::kPutExpiring && !Expiring<Engine>) return "entries do not expire";
    if (benchmark.UsesKeyspaces() && !HasKeyspaces<Engine>)
      return "it has no keyspaces, or the lab does not use them";
    return "";
  }

  void OpenKeyspaces(uint64_t count) {
    if constexpr (HasKeyspaces<Engine>) engine_.OpenKeyspaces(count);
  }

  Use UseOf(const Benchmark& benchmark) const {
    Use use;
    use.sessions = benchmark.Single() ? 1 : settings_.threads;
    if (benchmark.kind == Kind::kGetWhilePutting) use.sessions++;
    use.synchronous = benchmark.synchronous;
    if (benchmark.kind == Kind::kPutExpiring) use.time_to_live = kTimeToLive;
    return use;
  }

  void Prepare(const Benchmark& benchmark) {
    if (benchmark.empty) {
      Close();
      engine_.Destroy();
      Directory::Empty(settings_.db);
      newest_ = settings_.num - 1;
    }
    if (open_) {
      engine_.Adapt(UseOf(benchmark));
    } else {
      Directory::Create(settings_.db);
      engine_.Open(UseOf(benchmark));
      open_ = true;
    }
    if (benchmark.kind == Kind::kLatest && !zipfian_) zipfian_.emplace(settings_.num);
    if (benchmark.large_values && !large_pool_)
      large_pool_.emplace(settings_.seed, Operations<Engine>::kLargeValue);
    if (benchmark.kind == Kind::kReplay) LoadTrace(UseOf(benchmark));
    if (benchmark.UsesKeyspaces() && !benchmark.WholeDatabase())
      OpenKeyspaces(settings_.keyspaces);
  }

  // Leaves the database as it was when the trace began.
  void LoadTrace(const Use& use) {
    if (!trace_) {
      if (settings_.trace.empty()) throw WrongUse("replay wants --trace=FILE");
      trace_.emplace(settings_.trace);
      trace_pool_.emplace(settings_.seed, trace_->largest_value());
    }
    {
      typename Engine::Session session(&engine_);
      Replay<Engine>(*trace_, *trace_pool_, &session).Load();
    }
    engine_.WaitCompact();
    // An engine has as many sessions as it was opened for.
    Close();
    engine_.Open(use);
    open_ = true;
  }

  void RunThreads(const Benchmark& benchmark, Crew* crew, Result* result) {
    const uint64_t threads = benchmark.Single() ? 1 : settings_.threads;
    const Pool& pool = benchmark.large_values             ? *large_pool_
                       : benchmark.kind == Kind::kReplay ? *trace_pool_
                                                         : pool_;
    const Task task{benchmark, settings_, pool,    zipfian_ ? &*zipfian_ : nullptr,
                    &newest_,  threads,   trace_ ? &*trace_ : nullptr};
    const auto work = [&](uint64_t thread, Meter* meter, const auto& start) {
      typename Engine::Session session(&engine_);
      Operations<Engine> operations(task, thread, &session, meter);
      start();
      thread < threads ? operations.Run() : operations.PutBesideReaders();
    };
    crew->Run(threads, work, benchmark.kind == Kind::kGetWhilePutting ? Crew::Body(work) : nullptr,
              result);
  }

  void OnWhole(const Benchmark& benchmark, Meter* meter, const std::function<void()>& start,
               Result* result) {
    if (benchmark.kind == Kind::kCold) {
      Close();
      DropPages(settings_.db);
    }
    start();
    if (benchmark.kind == Kind::kCompact) {
      engine_.Compact();
    } else if (benchmark.kind == Kind::kCreateKeyspaces) {
      for (uint64_t count = 1; count <= settings_.keyspaces; count++) {
        OpenKeyspaces(count);
        meter->End(1, 0);
      }
      return;
    } else if (benchmark.kind == Kind::kWaitCompact) {
      if constexpr (std::is_void_v<decltype(engine_.WaitCompact())>) {
        engine_.WaitCompact();
      } else {
        meter->End(1, 0, engine_.WaitCompact());
        return;
      }
    } else if (benchmark.kind == Kind::kCold) {
      engine_.Open(UseOf(benchmark));
      open_ = true;
    } else {
      result->digest = SelfTest<Engine>(settings_, pool_).Run(&engine_, UseOf(benchmark));
      meter->End(SelfTest<Engine>::kPasses * SelfTest<Engine>::kOperations, 0);
      return;
    }
    meter->End(1, 0);
  }

  void Print(const std::string& json, const std::string& text) const {
    PrintLine(settings_.json ? json : text);
  }

  const Settings settings_;
  const Description description_;
  const Pool pool_;
  std::optional<Pool> large_pool_;
  // What is replayed, and its values.
  std::optional<Trace> trace_;
  std::optional<Pool> trace_pool_;
  std::optional<Zipfian> zipfian_;
  Engine engine_;
  bool open_ = false;
  std::atomic<uint64_t> newest_;
};

// Runs what the command line asks for and returns the exit status.
template <typename Engine>
int Main(int argc, char** argv) {
  EndWithParent();
  std::string name = "bench";
  try {
    name = Engine::Describe(Settings()).engine;
    const Settings settings = ParseSettings(argc, argv);
    const Description description = Engine::Describe(settings);
    if (!description.HasVariant(settings.variant)) {
      throw WrongUse(name + " has no variant '" + settings.variant + "'; --describe lists them");
    }
    if (settings.version || settings.describe) {
      PrintLine(settings.version ? description.engine + " " + description.version
                                 : description.Line());
      return 0;
    }
    std::vector<Benchmark> benchmarks;
    for (const std::string& benchmark : settings.benchmarks)
      benchmarks.push_back(FindBenchmark(benchmark));
    Driver<Engine> driver(settings);
    for (const Benchmark& benchmark : benchmarks) driver.Run(benchmark);
    driver.Close();
    return 0;
  } catch (const WrongUse& problem) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), problem.what());
    return 2;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), problem.what());
    return 3;
  }
}

}  // namespace lab

#endif  // LAB_COMMON_DRIVER_H_
