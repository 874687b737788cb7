// SPDX-License-Identifier: Apache-2.0
//
// Time without a machine: what a plan's lanes do, in seconds, and an event simulation of all kinds
// of ranks together. Compute runs step by step; a rank's communication lane carries out what was
// posted in the order of the posts, each exchange once the lanes of all that take part have come to
// it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/machine_model.h"
#include "plan/rank_kinds.h"

namespace orrery {

struct Transfer {
  double seconds = 0;                // once all are ready
  std::vector<size_t> peers;         // the other timelines that take part
  std::array<int64_t, 5> meeting{};  // names it to its peers
};

struct Beat {
  enum Kind : int8_t { compute, post, wait } kind;
  double seconds = 0;  // compute
  size_t transfer = 0;
};

struct Timeline {
  std::vector<Beat> beats;
  std::vector<Transfer> transfers;
};

// The plan's schedule without copies between memory tiers. Kinds of ranks stand for their members:
// peers are indices of kinds.alike(). [any thread]
Timeline timeline_of(const RankPlan& plan, const RankKinds& kinds, const Machine& machine);

// A rank's step. What is neither is spent waiting for ranks that are not ready, or for the last one
// to end.
struct Spent {
  double step = 0;  // until all have ended: equal for all
  double compute = 0;
  double exposed = 0;  // compute waits while bytes of this rank travel
  double idle() const { return step - compute - exposed; }
};

// One for each timeline. Throws Error if they wait for each other.
std::vector<Spent> simulate(const std::vector<Timeline>& timelines);

}  // namespace orrery
