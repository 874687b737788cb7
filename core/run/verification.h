// SPDX-License-Identifier: Apache-2.0
//
// Computes a step twice and compares what every launch has made (`orrery run --verify`). A launch
// that makes other bits of the same inputs shows that memory or processor of its rank have failed;
// other inputs, where no launch before has made them, show that an exchange has. [main thread]
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lower/rank_plan.h"
#include "program/state.h"
#include "run/device.h"

namespace orrery {

class Verification {
 public:
  // Copies the states that the step changes. REQUIRES: plan and device outlive this object.
  Verification(const RankPlan& plan, const Device& device,
               std::vector<std::shared_ptr<State>> changed);
  // Gives the states the values that they had, for the second computation.
  void begin_again();
  // To be called before and after each launch, with the memory of its inputs or outputs.
  // REQUIRES: the work on this memory is done.
  void before(const Launch& launch, const orr_buffer* in);
  void after(const Launch& launch, const orr_buffer* out);
  // Throws Error(kMiscomputed), on all ranks that take the step together (`ranks`), if a rank has
  // made other values the second time. Collective.
  void judge(const std::string& line, int64_t step, int ranks) const;

 private:
  struct Digests {
    uint64_t in = 0, out = 0;
  };
  uint64_t digest_of(const orr_buffer* at, const std::vector<Place>& places) const;
  std::string text_of(const Launch& launch, const std::vector<Place>& places) const;

  const RankPlan& plan_;
  const Device& device_;
  std::vector<std::shared_ptr<State>> changed_;
  std::vector<std::vector<std::byte>> values_;  // of the states, before the step
  std::vector<Digests> first_;                  // of the first computation, by launch
  size_t at_ = 0;                               // the next launch of the second
  bool again_ = false;
  bool same_inputs_ = true;             // of the launch that is under way
  std::string miscomputed_, received_;  // the first launch of each kind; "": there is none
};

}  // namespace orrery
