// SPDX-License-Identifier: Apache-2.0
//
// Composes operations that a comm plugin does not have of its sends and receives (orrery/comm.h).
// The results have the same bits as those of every other backend.
#pragma once

#include <orrery/comm.h>

#include <cstdint>
#include <functional>
#include <string>

namespace orrery {

// Whether the plugin carries the operation out itself: it has the operation and can add its
// elements, or only it can, because the memory is the device's.
bool is_native(const orr_comm_caps& caps, const orr_coll& c);

// Makes the messages that an operation is composed of. They have its name, and a tag that differs
// from those of other operations.
class MessagesOf {
 public:
  // REQUIRES: this object outlives the messages that it makes.
  explicit MessagesOf(const orr_coll& c);
  // `op` is ORR_COLL_SEND or ORR_COLL_RECV, of all the bytes of the buffer.
  orr_coll one(int32_t op, int peer, const orr_buffer& bytes) const;

 private:
  orr_coll common_{};
  std::string name_;
};

// Posts a group of sends and receives of bytes, and returns when they are done.
using PostMessages = std::function<void(const orr_coll* messages, int32_t n)>;

// Carries out `c` for `rank` of `ranks`; all ranks must call it. Exceptions of `post` pass through.
// REQUIRES: !is_native; buffers with host addresses.
void emulate(const orr_coll& c, int rank, int ranks, const PostMessages& post);

}  // namespace orrery
