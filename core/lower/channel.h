// SPDX-License-Identifier: Apache-2.0
//
// Channels: which exchanges of a rank share a lane, and with it one order. The collectives of an
// axis are a channel. Messages from a stage of a pipeline to a neighbour are a channel for each
// sender and receiver, so that both post them in the same order, whatever else they do.
#pragma once

#include <vector>

#include "lower/rank_plan.h"

namespace orrery {

// Messages from coordinate c of a pipeline of `size` to c + 1 or c - 1, modulo the size, for some
// of the c, so that no coordinate is in two pairs: a communicator for each pair is enough.
struct MessageChannel {
  int size;
  int step;   // size - 1: to the coordinate before
  int color;  // c modulo 2; 2: the last coordinate of an odd size

  // The coordinate that sends where `coordinate` is one of the two; kNone if it is in no pair.
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
