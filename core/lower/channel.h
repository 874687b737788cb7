// SPDX-License-Identifier: Apache-2.0
//
// Channels: which exchanges of a rank share a lane, and with it one order. The collectives of an
// axis are a channel. Messages from a stage of a pipeline to a neighbour are a channel for each
// sender and receiver, so that both post them in the same order, whatever else they do.
#pragma once

#include <vector>

#include "lower/rank_plan.h"

namespace orrery {

// The messages between some pairs of neighbours of a pipeline, in one direction. No stage is in two
// pairs, so that one group of communicators, one for each pair, serves the channel. A pipeline of
// four stages has four channels: 0 to 1 and 2 to 3; 1 to 2 and 3 to 0; and both the other way.
struct MessageChannel {
  int size;
  int step;   // 1: to the next stage; size - 1: to the one before
  int color;  // the sender's coordinate modulo 2; 2: the last stage of an odd size

  // The sender of the pair that `coordinate` is in; kNone if it is in none.
  int sender(int coordinate) const;
  int receiver(int coordinate) const { return (sender(coordinate) + step) % size; }
};

// The channels of messages of a pipeline, numbered from 1 in the order of this list.
std::vector<MessageChannel> message_channels(int size);

bool is_message(const Exchange& e);
// The number of the channel among those of the exchange's axis; 0: it is that of the collectives,
// which also has messages between stages that are not neighbours.
int channel_of(const Exchange& e, const Mesh& mesh, int rank);

}  // namespace orrery
