// SPDX-License-Identifier: Apache-2.0
#include "run/copy_lane.h"

#include <chrono>
#include <utility>

#include "base/error.h"
#include "launch/environment.h"
#include "plugin/host.h"
#include "run/host_device.h"
#include "run/thread_pool.h"

namespace orrery {

CopyLane::~CopyLane() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  posted_.notify_all();
  if (thread_.joinable()) thread_.join();
}

CopyLane::Ticket CopyLane::submit(Copy copy) {
  std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { lane(); });
  queue_.push_back(std::move(copy));
  posted_.notify_one();
  return ++submitted_;
}

void CopyLane::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  auto settled = [&] { return completed_ >= ticket || error_; };
  const auto patience = std::chrono::nanoseconds(deadline_ns());
  for (Ticket before = completed_; !finished_.wait_for(lock, patience, settled);
       before = completed_)
    if (completed_ == before && !error_)
      error_ = std::make_exception_ptr(
          Error(ORR_DEADLINE,
                fmt::format("offload: a copy has not ended within {} s: check the disk, or raise "
                            "ORRERY_DEADLINE",
                            deadline_ns() / 1000000000)));
  if (error_) std::rethrow_exception(error_);
}

void CopyLane::count(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  moved_ += bytes;
}

uint64_t CopyLane::bytes_moved() const {
  std::lock_guard lock(mutex_);
  return moved_;
}

void CopyLane::lane() {
  ThreadPool::get().unpin();
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [&] { return closing_ || !queue_.empty(); });
    if (closing_) return;
    Copy copy = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      if (copy.before) copy.before();
      carry_out(copy);
      if (copy.after) copy.after();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    moved_ += copy.bytes, ++completed_;
    finished_.notify_all();
  }
}

void CopyLane::carry_out(const Copy& copy) {
  const auto& [to, from, bytes, before, after] = copy;
  if (from.file) return from.file->read(orr_buffer_host(&to.buffer), bytes, from.buffer.offset);
  if (to.file) return to.file->write(orr_buffer_host(&from.buffer), bytes, to.buffer.offset);
  check(host_device().copy(host_device().self, nullptr, &to.buffer, &from.buffer), "offload");
}

}  // namespace orrery
