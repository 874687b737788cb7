// SPDX-License-Identifier: Apache-2.0
#include "lower/channel.h"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

// Pairs of neighbours of a ring take turns; a ring of odd size has a pair left.
int color_of(int sender, int size) { return size % 2 && sender == size - 1 ? 2 : sender % 2; }

}  // namespace

int MessageChannel::sender(int coordinate) const {
  for (const int c : {coordinate, (coordinate + size - step) % size})
    if (color_of(c, size) == color) return c;
  return kNone;
}

std::vector<MessageChannel> message_channels(int size) {
  std::vector<MessageChannel> all;
  for (int step = 1; step < size; step += std::max(size - 2, 1))
    for (int color = 0; color < 2 + size % 2; ++color) all.push_back({size, step, color});
  return all;
}

bool is_message(const Exchange& e) { return e.op == ORR_COLL_SEND || e.op == ORR_COLL_RECV; }

int channel_of(const Exchange& e, const Mesh& mesh, int rank) {
  if (!is_message(e) || mesh.one_lane) return 0;
  int from = mesh.coordinate(e.axis, rank), to = e.root_or_peer;
  if (e.op == ORR_COLL_RECV) std::swap(from, to);
  const std::vector<MessageChannel> all = message_channels(mesh.size_of(e.axis));
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].sender(from) == from && all[i].receiver(from) == to) return static_cast<int>(i) + 1;
  return 0;
}

}  // namespace orrery
