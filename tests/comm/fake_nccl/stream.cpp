// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <unistd.h>

#include <utility>

#include "misuse.h"

namespace fake {
namespace {

// What operations under way touch, of all streams.
struct Use {
  const Stream* stream;
  uint64_t number;
  Range range;
  std::string what;
};
std::mutex& uses_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}
std::list<Use>& uses() {
  static std::list<Use>& all = *new std::list<Use>;
  return all;
}

bool meet(const Range& a, const Range& b) {
  return a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes && (a.writes || b.writes);
}

}  // namespace

void need_unused(const Range& range, const char* rule) {
  std::lock_guard lock(uses_mutex());
  for (const Use& u : uses())
    if (meet(u.range, range)) misuse(rule, u.what + " has not ended");
}

Stream::Stream() : thread_([this] { work(); }) {}

Stream::~Stream() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

uint64_t Stream::last() const {
  std::lock_guard lock(mutex_);
  return enqueued_;
}

uint64_t Stream::done() const {
  std::lock_guard lock(mutex_);
  return done_;
}

Stream::Known Stream::known() const {
  std::lock_guard lock(mutex_);
  Known all = known_;
  all[this] = enqueued_;
  return all;
}

void Stream::learn(const Known& known) {
  std::lock_guard lock(mutex_);
  for (const auto& [stream, number] : known) known_[stream] = std::max(known_[stream], number);
}

void Stream::begin_capture() {
  std::lock_guard lock(mutex_);
  captured_ = true;
}

Stream::Kept Stream::end_capture() {
  std::lock_guard lock(mutex_);
  captured_ = false;
  return std::exchange(kept_, {});
}

bool Stream::captured() const {
  std::lock_guard lock(mutex_);
  return captured_;
}

Stream::Operation* Stream::youngest_kept() const {
  std::lock_guard lock(mutex_);
  return kept_.empty() ? nullptr : kept_.back().get();
}

void Stream::enqueue(const std::string& what, std::vector<Range> ranges,
                     std::function<void()> run) {
  std::lock_guard lock(mutex_);
  if (captured_)
    return kept_.push_back(std::make_shared<Operation>(what, std::move(ranges), std::move(run)));
  const uint64_t number = ++enqueued_;
  {
    std::lock_guard use_lock(uses_mutex());
    for (const Range& r : ranges) {
      for (const Use& u : uses())
        if (u.stream != this && meet(u.range, r) && u.number > known_[u.stream])
          misuse("memory overwritten in use",
                 what + " touches what " + u.what + " of another stream does");
    }
    for (const Range& r : ranges) uses().push_back({this, number, r, what});
  }
  queue_.push_back({number, std::move(run)});
  changed_.notify_all();
}

void Stream::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Queued next = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    if (dice(16) == 0) usleep(static_cast<useconds_t>(dice(200)));
    next.run();
    next.run = nullptr;  // what it holds is gone before anybody hears that it is done
    {
      std::lock_guard use_lock(uses_mutex());
      uses().remove_if([&](const Use& u) { return u.stream == this && u.number == next.number; });
    }
    lock.lock();
    done_ = next.number;
  }
}

}  // namespace fake
