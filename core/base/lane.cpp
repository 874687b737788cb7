// SPDX-License-Identifier: Apache-2.0
#include "base/lane.h"

#include <utility>

#include "base/error.h"

namespace orrery {

void Lane::finish() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

void Lane::start(std::function<void()> first) {
  thread_ = std::thread([this, first = std::move(first)] {
    if (first) first();
    run();
  });
}

Lane::Ticket Lane::submit(std::function<void()> work) {
  if (!started()) {
    work();
    return completed_ = ++submitted_;
  }
  std::unique_lock lock(mutex_);
  const Ticket ticket = ++submitted_;
  queue_.push_back(std::move(work));
  lock.unlock();
  posted_.notify_one();
  return ticket;
}

void Lane::wait(Ticket ticket, std::chrono::nanoseconds patience, const std::string& late) {
  std::unique_lock lock(mutex_);
  const auto settled = [&] { return completed_ >= ticket || error_; };
  for (Ticket before = completed_; !finished_.wait_for(lock, patience, settled);
       before = completed_)
    if (completed_ == before && !error_)
      error_ = std::make_exception_ptr(Error(ORR_DEADLINE, late));
  if (error_) std::rethrow_exception(error_);
}

bool Lane::done(Ticket ticket) const {
  std::lock_guard lock(mutex_);
  return completed_ >= ticket;
}

Lane::Ticket Lane::last() const {
  std::lock_guard lock(mutex_);
  return submitted_;
}

void Lane::drop() {
  std::lock_guard lock(mutex_);
  completed_ += queue_.size();
  queue_.clear();
}

void Lane::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    const bool go = !error_;
    lock.unlock();
    std::exception_ptr error;
    try {
      if (go) work();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    ++completed_;
    finished_.notify_all();
  }
}

}  // namespace orrery
