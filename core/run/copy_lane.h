// SPDX-License-Identifier: Apache-2.0
//
// A thread that copies between the arena and the host memory or files in which tensors wait. It
// runs copies in the order of their submission, while compute goes on.
#pragma once

#include <orrery/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/lane.h"
#include "store/spill_file.h"

namespace orrery {

class CopyLane {
 public:
  using Ticket = Lane::Ticket;
  // One end of a copy: memory, or with `file` the bytes of the file from the buffer's offset on.
  struct End {
    orr_buffer buffer{};
    std::shared_ptr<SpillFile> file = nullptr;
  };
  struct Copy {
    End to, from;
    uint64_t bytes = 0;
    std::function<void()> before = nullptr, after = nullptr;  // on the lane; may throw
  };

  ~CopyLane() { lane_.drop(); }

  // At most one end is a file. The memory is borrowed until the copy is done. Never blocks.
  // [compute thread]
  Ticket submit(Copy copy);
  // Returns when the copy is done. Once a copy has failed, or has not ended within the job's
  // deadline, every call throws that Error. [compute thread]
  void wait(Ticket ticket);
  // Counts bytes that a device has copied by itself.
  void count(uint64_t bytes) { moved_ += bytes; }
  uint64_t bytes_moved() const { return moved_; }  // [any thread]

 private:
  void carry_out(const Copy& copy);

  std::atomic<uint64_t> moved_{0};
  Lane lane_;
};

}  // namespace orrery
