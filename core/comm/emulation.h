// SPDX-License-Identifier: Apache-2.0
//
// Operations that a comm plugin does not have, composed of its sends and receives (orrery/comm.h):
// with the bits that every other backend gives.
#pragma once

#include <orrery/comm.h>

#include <cstdint>
#include <functional>
#include <string>

namespace orrery {

// Whether the operation is the plugin's own affair: it has its kind and can add its elements, or
// nobody else could carry it out.
bool is_native(const orr_comm_caps& caps, const orr_coll& c);

// The messages that an operation is composed of: named as it is, and told apart from other
// operations'.
class MessagesOf {
 public:
  // REQUIRES: this object outlives the use of what it makes.
  explicit MessagesOf(const orr_coll& c);
  // `op` is ORR_COLL_SEND or ORR_COLL_RECV, of all the bytes of the buffer.
  orr_coll one(int32_t op, int peer, const orr_buffer& bytes) const;

 private:
  orr_coll common_{};
  std::string name_;
};

// Posts a group of sends and receives of bytes, and returns when they are done.
using PostMessages = std::function<void(const orr_coll* messages, int32_t n)>;

// Carries out `c` for `rank` of `ranks`; the others do the same. What `post` throws passes through.
// REQUIRES: !is_native; buffers with host addresses.
void emulate(const orr_coll& c, int rank, int ranks, const PostMessages& post);

}  // namespace orrery
