// SPDX-License-Identifier: Apache-2.0
//
// What a worker and a server say to each other, over a group of the two. The worker speaks first:
//
//   letter push   numbers, then values        no answer
//   letter pull   or end                      the version; if it is not -1, the weights
#pragma once

#include <string>

#include "job/world_comm.h"
#include "run/arrivals.h"

namespace orrery {

struct Letter {
  int64_t kind, clock, read;  // Arrival::Kind; steps done before; version that a push's weights had
};

// One end, driven by one thread.
class Line {
 public:
  // `where`: the strategy's Lua line, for messages. [main thread]
  Line(WorldComm& comm, int group, const std::string& where);
  void send(const void* bytes, size_t count, const char* what) const;
  void recv(void* bytes, size_t count, const char* what) const;

 private:
  void move(int32_t op, void* bytes, size_t count, const char* what) const;
  WorldComm::Post post_;
  int peer_;
  std::string where_;
};

}  // namespace orrery
