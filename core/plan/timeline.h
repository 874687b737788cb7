// SPDX-License-Identifier: Apache-2.0
//
// Simulates the time of a step: a timeline says what a plan's lanes do, in seconds, and an event
// simulation plays those of all kinds of ranks together. Compute runs step by step. A lane, one for
// each channel (lower/channel.h), carries out exchanges in the order of their posts, each once the
// lanes of all its ranks are ready for it, until it has arrived at all. Transfers that take more of
// a link than there is travel slower, all by the same factor.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/machine_model.h"
#include "plan/rank_kinds.h"

namespace orrery {

struct Transfer {
  double seconds = 0;                // from when all are ready
  std::vector<size_t> peers;         // the other timelines that take part
  std::array<int64_t, 5> meeting{};  // identifies the transfer on all timelines that take part
  size_t lane = 0;                   // of this timeline
  std::string axis = {};             // its ranks
  double compute_share = 0;          // of its speed, that compute loses while it travels
  LinkUse use = {};                  // of the rank's links, while it travels alone
  bool copy = false;                 // between memory tiers; `axis` is then the tier
};

// A step of the compute lane.
struct Beat {
  enum Kind : int8_t { compute, post, wait } kind;
  double seconds = 0;  // compute
  size_t transfer = 0;
};

struct Timeline {
  std::vector<Beat> beats;
  std::vector<Transfer> transfers;
  // The ranks that share the network card of this one: timelines, this one too, and how many ranks
  // of each. Empty: it has a card of its own.
  std::map<size_t, int> card = {};
};

// The timeline of a plan's schedule. A kind stands for all its ranks: peers are indices of
// kinds.alike(). [any thread]
Timeline timeline_of(const RankPlan& plan, const RankKinds& kinds, const Machine& machine);

// How a rank spends a step. The rest, idle(), is time in which it waits for ranks that are not
// ready or for the last one to end.
struct Spent {
  double step = 0;  // until all ranks have ended: equal for all
  double compute = 0;
  double exposed = 0;  // compute waits for a lane on which bytes travel, or is slower because of it
  double idle() const { return step - compute - exposed; }
  // Both by axis of the transfers; the rest of idle() is after this rank's last beat.
  std::map<std::string, double> exposed_by = {}, blocked_by = {};
  std::map<std::string, double> offload_by = {};  // of `exposed`, what copies take, by tier
};

// One for each timeline. Throws Error if they wait for each other.
std::vector<Spent> simulate(const std::vector<Timeline>& timelines);

}  // namespace orrery
