// SPDX-License-Identifier: Apache-2.0
//
// Streams: queues that a thread of their own works off, some time later. What an operation touches
// is its own until it is done: another stream that has not been made to wait for it may not touch
// it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fake {

struct Range {
  char* begin;
  size_t bytes;
  bool writes;
};

// misuse(rule) if an operation under way on any stream touches the range.
void need_unused(const Range& range, const char* rule);

class Stream {
 public:
  // Until when the work of other streams is known to be done: their operations' numbers.
  using Known = std::map<const Stream*, uint64_t>;

  Stream();
  ~Stream();
  Stream(const Stream&) = delete;

  void enqueue(const std::string& what, std::vector<Range> ranges, std::function<void()> run);
  bool idle() const { return done() >= last(); }
  uint64_t last() const;  // number of the youngest operation
  uint64_t done() const;  // all up to this one are
  Known known() const;    // with this stream's own last
  void learn(const Known& known);

  // While a stream is captured its operations are kept, not run.
  struct Operation {
    std::string what;
    std::vector<Range> ranges;
    std::function<void()> run;
  };
  using Kept = std::vector<std::shared_ptr<Operation>>;
  void begin_capture();
  Kept end_capture();
  bool captured() const;
  Operation* youngest_kept() const;  // null if there is none

 private:
  void work();
  struct Queued {
    uint64_t number;
    std::function<void()> run;
  };
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Queued> queue_;
  uint64_t enqueued_ = 0, done_ = 0;
  bool closing_ = false, captured_ = false;
  Kept kept_;
  Known known_;
  std::thread thread_;
};

}  // namespace fake
