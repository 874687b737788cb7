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

CopyLane::Ticket CopyLane::submit(Copy copy) {
  if (!lane_.started()) lane_.start([] { ThreadPool::get().unpin(); });
  return lane_.submit([this, copy = std::move(copy)] {
    if (copy.before) copy.before();
    carry_out(copy);
    if (copy.after) copy.after();
    moved_ += copy.bytes;
  });
}

void CopyLane::wait(Ticket ticket) {
  lane_.wait(ticket, std::chrono::nanoseconds(deadline_ns()),
             fmt::format("offload: a copy has not ended within {} s: check the disk, or raise "
                         "ORRERY_DEADLINE",
                         deadline_ns() / 1000000000));
}

void CopyLane::carry_out(const Copy& copy) {
  const auto& [to, from, bytes, before, after] = copy;
  if (from.file) return from.file->read(orr_buffer_host(&to.buffer), bytes, from.buffer.offset);
  if (to.file) return to.file->write(orr_buffer_host(&from.buffer), bytes, to.buffer.offset);
  check(host_device().copy(host_device().self, nullptr, &to.buffer, &from.buffer), "offload");
}

}  // namespace orrery
