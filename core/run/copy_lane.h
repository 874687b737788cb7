// SPDX-License-Identifier: Apache-2.0
//
// Copies between the arena and memory or files where tensors wait for their use: one thread that
// runs them in the order of their submission while compute goes on.
#pragma once

#include <orrery/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "store/spill_file.h"

namespace orrery {

class CopyLane {
 public:
  using Ticket = uint64_t;
  // One end: memory, or, if `file` is there, the bytes of it from the buffer's offset on.
  struct End {
    orr_buffer buffer{};
    std::shared_ptr<SpillFile> file = nullptr;
  };
  struct Copy {
    End to, from;
    uint64_t bytes = 0;
    std::function<void()> before = nullptr, after = nullptr;  // on the lane; may throw
  };

  ~CopyLane();

  // At most one end is a file. The memory is borrowed until the copy is done. Never blocks.
  // [compute thread]
  Ticket submit(Copy copy);
  // Returns when the copy is done; throws Error, the same again and again, once one has failed or
  // has not ended within the job's deadline. [compute thread]
  void wait(Ticket ticket);
  // Copies of as many bytes that a device made by itself.
  void count(uint64_t bytes);
  uint64_t bytes_moved() const;  // [any thread]

 private:
  void lane();
  static void carry_out(const Copy& copy);

  mutable std::mutex mutex_;
  std::condition_variable posted_, finished_;
  std::deque<Copy> queue_;
  Ticket submitted_ = 0, completed_ = 0;
  uint64_t moved_ = 0;
  std::exception_ptr error_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace orrery
