// SPDX-License-Identifier: Apache-2.0
//
// The states of one run, and their way to a checkpoint and back. With several ranks all of it but
// `remember` and `known` is collective, and an error of one rank is thrown by all. [main thread]
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "program/state.h"
#include "run/run.h"
#include "store/checkpoint.h"

namespace orrery {

// Two of one name could not be told apart by strategies, nor in a checkpoint: throws Error, "LINE:
// WHERE two tensors named ...: REMEDY".
void refuse_equal_names(const std::vector<std::shared_ptr<State>>& states, const std::string& line,
                        const char* where, const char* remedy);

class RunStates {
 public:
  // REQUIRES: `spec` outlives this.
  RunStates(const RunSpec& spec, int ranks) : spec_(spec), ranks_(ranks) {}

  // A state of a program of the run; takes the value that a checkpoint has for it.
  void remember(const std::shared_ptr<State>& state);
  // Those of the script's own buffers that the loaded checkpoint has.
  void remember_buffers();
  const std::vector<std::shared_ptr<State>>& known() const { return known_; }
  // With those of the model and the buffers that have changed, and memory for every one.
  const std::vector<std::shared_ptr<State>>& all();

  // Refuses parameters that are not finite. `alike`: states that vary, but whose ranks all hold the
  // same now; of the others it saves every coordinate's.
  void save(const std::string& directory, const CheckpointFacts& facts,
            const std::set<const State*>& alike);
  // Every rank reads the directory for itself; all go on with what rank 0 has read, or none does.
  CheckpointFacts load(const std::string& directory);
  // What a checkpoint gave lies in the states' memory now: its own copy may go.
  void forget_loaded();

  // What any rank has met, on all of them; "" is nothing.
  void throw_together(const std::string& error, const char* what) const;

 private:
  void begin_with(const std::shared_ptr<State>& s, const std::vector<HostTensor>& values);
  void check_fits(const std::map<std::string, std::vector<HostTensor>>& values,
                  const std::string& directory);
  void compare_loaded(const LoadedCheckpoint& c, const std::string& directory) const;

  void remember_model();

  const RunSpec& spec_;
  std::vector<std::shared_ptr<State>> known_, loaded_;
  // Optimizer states, until a step makes them: one value, or one of each coordinate.
  std::map<std::string, std::vector<HostTensor>> pending_;
  int ranks_;
};

}  // namespace orrery
