// The threads of one benchmark: started together, measured together, stopped when the first of them
// fails.

#ifndef LAB_COMMON_CREW_H_
#define LAB_COMMON_CREW_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "meter.h"
#include "report.h"
#include "resources.h"

namespace lab {

class Crew {
 public:
  // The body of a thread: prepares itself, calls `wait_for_start`, works.
  using Body = std::function<void(uint64_t thread, Meter* meter,
                                  const std::function<void()>& wait_for_start)>;

  // `seconds` after the start the benchmark has to end (0: never); every `interval` seconds a line
  // is printed (0: no lines).
  Crew(std::string benchmark, double seconds, double interval)
      : benchmark_(std::move(benchmark)), seconds_(seconds), interval_(interval) {}

  // `threads` times `body`; with `beside` one more thread, which goes on until the others have
  // ended. Fills what is measured into `result`, or throws what the first failing thread threw.
  void Run(uint64_t threads, const Body& body, const Body& beside, Result* result) {
    std::vector<std::unique_ptr<Meter>> meters;
    std::vector<std::thread> running;
    for (uint64_t thread = 0; thread < threads; thread++)
      Launch(thread, body, &deadline_, &meters, &running);
    Deadline end_of_beside{kNever};
    if (beside) Launch(threads, beside, &end_of_beside, &meters, &running);
    Await(running.size());

    ResetPeakMemory();
    const double cpu = CpuSeconds();
    const BytesWritten written;
    const uint64_t read = BytesRead();
    const std::optional<DeviceRequests> requests = CountDeviceRequests();
    const uint64_t start = Start();
    std::thread reporter;
    if (interval_ > 0) reporter = std::thread([&] { ReportIntervals(start, threads, meters); });
    for (uint64_t thread = 0; thread < threads; thread++) running[thread].join();
    end_of_beside = 0;
    for (uint64_t thread = threads; thread < running.size(); thread++) running[thread].join();
    Finish();
    if (reporter.joinable()) reporter.join();
    if (problem_) std::rethrow_exception(problem_);

    result->threads = threads;
    uint64_t end = start;
    for (uint64_t thread = 0; thread < threads; thread++) {
      const Meter& meter = *meters[thread];
      result->operations += meter.operations();
      result->bytes += meter.bytes();
      if (result->found) *result->found += meter.found();
      result->latencies.Add(meter.latencies());
      result->truncated |= meter.truncated();
      end = std::max(end, meter.last());
    }
    result->seconds = 1e-9 * static_cast<double>(end - start);
    if (beside)
      result->writer_ops_per_sec =
          static_cast<double>(meters.back()->operations()) / result->seconds;
    result->cpu_seconds = CpuSeconds() - cpu;
    result->bytes_written = BytesWritten().Since(written);
    result->bytes_read = BytesRead() - read;
    if (requests) result->device = CountDeviceRequests().value_or(*requests).Since(*requests);
    result->peak_memory_bytes = PeakMemoryBytes();
  }

 private:
  static constexpr uint64_t kNever = UINT64_MAX;

  void Launch(uint64_t thread, const Body& body, const Deadline* deadline,
              std::vector<std::unique_ptr<Meter>>* meters, std::vector<std::thread>* running) {
    meters->push_back(std::make_unique<Meter>(deadline));
    running->emplace_back([this, thread, &body, meter = meters->back().get()] {
      bool announced = false;
      const auto wait_for_start = [&] {
        announced = true;
        {
          std::unique_lock<std::mutex> lock(mutex_);
          ready_++;
          changed_.notify_all();
          changed_.wait(lock, [&] { return started_; });
        }
        meter->Begin();
      };
      try {
        body(thread, meter, wait_for_start);
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!problem_) problem_ = std::current_exception();
        deadline_ = 0;
        if (!announced) ready_++;
        changed_.notify_all();
      }
    });
  }

  void Await(uint64_t all) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return ready_ == all; });
  }

  uint64_t Start() {
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t now = NowNanos();
    if (problem_) {
      deadline_ = 0;
    } else if (seconds_ > 0) {
      deadline_ = now + static_cast<uint64_t>(seconds_ * 1e9);
    }
    started_ = true;
    changed_.notify_all();
    return now;
  }

  void Finish() {
    std::lock_guard<std::mutex> lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }

  // Prints every interval that has gone by, also one in which nothing was done.
  void ReportIntervals(uint64_t start, uint64_t threads,
                       const std::vector<std::unique_ptr<Meter>>& meters) {
    Histogram latencies_before;
    uint64_t operations_before = 0;
    const auto beginning = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(start));
    for (uint64_t n = 1;; n++) {
      const double second = static_cast<double>(n) * interval_;
      const auto due = beginning + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                       std::chrono::duration<double>(second));
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait_until(lock, due, [&] { return finished_; });
      }
      if (std::chrono::steady_clock::now() < due) return;
      Histogram latencies;
      uint64_t operations = 0;
      for (uint64_t thread = 0; thread < threads; thread++) {
        latencies.Add(meters[thread]->latencies());
        operations += meters[thread]->operations();
      }
      PrintLine(SeriesLine(benchmark_, second, operations - operations_before,
                           latencies.Since(latencies_before)));
      latencies_before = latencies;
      operations_before = operations;
    }
  }

  const std::string benchmark_;
  const double seconds_;
  const double interval_;
  Deadline deadline_{kNever};
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t ready_ = 0;
  bool started_ = false;
  bool finished_ = false;
  std::exception_ptr problem_;
};

}  // namespace lab

#endif  // LAB_COMMON_CREW_H_
