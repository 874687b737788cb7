// SPDX-License-Identifier: Apache-2.0
//
// The memory of a plan's places, and exchanges with their buffers.
#pragma once

#include <memory>
#include <vector>

#include "comm/world_comm.h"
#include "lower/rank_plan.h"
#include "store/spill_file.h"

namespace orrery {

// A tensor's memory. If its storage has several slots, `first` is the tensor in the first slot.
struct Bound {
  orr_buffer first{};
  uint64_t stride = 0;
  int64_t slots = 1;
  Slots by = Slots::one;

  orr_buffer at(const Step& step) const {
    orr_buffer b = first;
    if (by == Slots::ring) b.offset += static_cast<uint64_t>(step.microbatch % slots) * stride;
    if (by == Slots::stack) b.offset += static_cast<uint64_t>(step.depth) * stride;
    return b;
  }
};

struct Posted {
  orr_coll coll;
  Bound send, recv;
  std::shared_ptr<SpillFile> send_file, recv_file;  // of a copy
  int group = 0;
  std::vector<WorldComm::Ticket> tickets;  // by microbatch
};

}  // namespace orrery
