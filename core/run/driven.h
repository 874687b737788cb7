// SPDX-License-Identifier: Apache-2.0
//
// Training under a strategy's driver, where ranks take no step together: the functions that the
// driver gets to run programs with (orrery/driver.h). A session is the time between two points at
// which all ranks meet; between sessions no rank works, and all have equal weights. [main thread]
#pragma once

#include <orrery/driver.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "run/runtime.h"
#include "run/states.h"
#include "run/variant.h"

namespace orrery {

// Throws Error, beginning with `line`, if no driver can take this step.
void refuse_undrivable(const Blueprint& b, const std::string& line);

class Driven : public AtWork, public std::enable_shared_from_this<Driven> {
 public:
  // Collective. `scalars`: the names of the numbers that each step gets.
  Driven(const Blueprint& step, std::vector<std::string> scalars, Runtime& runtime,
         std::string told_as);

  // Whether there is a step for batches of this shape, and adding one, without peers.
  bool knows(const std::string& shape) const { return steps_.count(shape) > 0; }
  void add(const std::string& shape, const Blueprint& step);

  // Takes step `step` (from 1) of this rank; returns the outputs that the driver gives.
  std::map<std::string, double> step(const std::string& shape, const BatchFields& batch,
                                     int64_t step, const std::map<std::string, double>& scalars);
  // Whether samples of the batch are this rank's.
  bool has_samples(const BatchFields& batch) const;
  // Ends the session. Collective.
  void drain() override;
  void abandon(const std::string& why) override;

  uint64_t arena_bytes() const;  // of the largest program of this rank's steps
  // Bytes that this rank has sent in the sessions that have ended, and those that the driver
  // predicts for them.
  uint64_t sent() const { return sent_; }
  uint64_t predicted() const;

 private:
  using Pieces = std::vector<std::unique_ptr<Variant>>;
  struct Beside {
    SharedArena arena;  // it runs while the steps do
    std::unique_ptr<Variant> variant;
  };
  struct AtHand {  // the step under way
    const Pieces* pieces;
    const BatchFields* batch;
    int64_t step;
    const std::map<std::string, double>* scalars;
  };
  struct Calls;  // the functions of `host_`
  // Calls a function of the driver; throws its error.
  template <class Call>
  void enter(const char* function, Call call) const;

  void bind_all_states(const Blueprint& step);
  void compile_beside(const Blueprint& step);
  void fill_host(const Blueprint& step);
  void begin();
  int64_t samples(int64_t first, int64_t last, const BatchFields& batch) const;
  void compute(int32_t piece, double* outputs);
  void run(const std::string& program, const double* scalars, int64_t step);

  Runtime& runtime_;
  const std::string told_as_;  // RunSpec
  const int rank_, world_;
  const std::string origin_, line_;
  const char* const plugin_;                    // the driver's name in messages (plugin/inside.h)
  std::vector<std::string> scalars_, outputs_;  // names, in the order of the driver's numbers
  std::vector<int64_t> leaf_first_;
  std::vector<std::pair<int64_t, int64_t>> pieces_;
  std::map<std::string, Type> updated_;  // states that a step updates
  std::map<std::string, std::shared_ptr<State>> states_;
  StateList lasting_;                     // states that checkpoints have
  std::vector<uint64_t> versions_;        // their versions when the session began
  std::map<std::string, Pieces> steps_;   // by shape
  std::map<std::string, Beside> beside_;  // programs of this rank
  std::map<int32_t, WorldComm::Post> groups_;
  bool open_ = false;
  const AtHand* at_hand_ = nullptr;
  uint64_t sent_ = 0, sent_before_ = 0;
  orr_driver_host host_{};
  std::shared_ptr<const orr_driver> driver_;  // destroyed first: its threads use the other members
};

}  // namespace orrery
