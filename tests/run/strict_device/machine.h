// SPDX-License-Identifier: Apache-2.0
//
// A device as strict as device.h allows. Its memory has no address for the host; nothing that is
// enqueued runs before somebody waits for it, and then in an order of its own between streams: only
// what must, everything else first, or at random (STRICT_SEED). What breaks a rule is an error that
// begins with "strict device:", or ends the process where no status can be returned. With
// STRICT_ABSENT the machine has no such device.
#pragma once

#include <orrery/device.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

struct orr_event {
  uint64_t recorded = 0, done = 0;  // times
  orr_stream* on = nullptr;         // the last one
};

namespace strict {

struct Allocation {
  std::unique_ptr<orr_memory> memory;
  std::vector<char> bytes;
  int pending = 0;  // pieces of work that name it
};

// A piece of work, or a record of an event, or a wait for its `times`-th record.
struct Item {
  std::function<void()> run;
  std::vector<uint64_t> memories;  // that it names
  orr_event *record = nullptr, *wait = nullptr;
  uint64_t times = 0;
};

}  // namespace strict

struct orr_graph {
  std::vector<strict::Item> items;
};

struct orr_stream {
  std::deque<strict::Item> queue;
  orr_graph* capture = nullptr;
  int32_t error_code = 0;  // the first since somebody was told
  std::string error;
};

namespace strict {

[[noreturn]] void broken(const std::string& rule);  // throws
[[noreturn]] void fatal(const std::string& rule);

class Machine {
 public:
  static Machine& get();
  using Lock = std::unique_lock<std::recursive_mutex>;
  Lock lock() { return Lock(mutex_); }

  void open();
  orr_memory* allocate(int32_t tier, uint64_t bytes);
  void free(orr_memory* memory);
  // 0 for ordinary memory. Throws if the buffer is not whole within a living allocation.
  uint64_t handle(const orr_buffer& b);
  // REQUIRES: called by work that runs.
  char* address(uint64_t handle, const orr_buffer& b);

  orr_stream* make_stream();
  void destroy(orr_stream* stream);
  void enqueue(orr_stream* stream, Item item);
  void sync(const orr_event& event);
  void forget(const orr_event* event);  // work that names it is left without
  void begin(orr_stream* stream);
  orr_graph* end(orr_stream* stream);

  // What was done since `open`; printed at the end of the process where STRICT_COUNTS is set.
  struct Counts {
    uint64_t launches = 0, recorded = 0, graphs = 0, syncs = 0, allocations = 0;
  } counts;

 private:
  void must_be_open() const;
  void must_not_capture(const char* what) const;
  bool can_run(const orr_stream& s) const;
  orr_stream* choose(const orr_event& wanted);
  orr_stream* needed(const orr_event& wanted) const;
  void step(orr_stream& s);

  std::recursive_mutex mutex_;
  bool open_ = false;
  uint64_t handles_ = 0, random_ = 1;
  std::map<uint64_t, Allocation> allocations_;
  std::vector<std::unique_ptr<orr_stream>> streams_;
  int captures_ = 0;
  std::thread::id capturing_;
};

}  // namespace strict
