// SPDX-License-Identifier: Apache-2.0
//
// The states of one run, and how they are saved to a checkpoint and loaded. With several ranks all
// functions but `remember` and `known` are collective, and all ranks throw if one has an error.
// [main thread]
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "program/state.h"
#include "run/run.h"
#include "run/saving.h"
#include "store/checkpoint.h"

namespace orrery {

// Sorts the parameters by name, and their gradients with them. Throws Error if two have the same
// name: strategies and checkpoints could not distinguish them.
void sort_parameters(RunSpec& spec);

class RunStates {
 public:
  // REQUIRES: `spec` outlives this.
  RunStates(const RunSpec& spec, int ranks) : spec_(spec), ranks_(ranks) {}

  // Adds a state that a program of the run uses. If a loaded checkpoint has a value for it, the
  // state gets that.
  void remember(const std::shared_ptr<State>& state);
  // Adds those of the script's other parameters and buffers that the loaded checkpoint has. Later,
  // when a program first uses them, steps of other runs may have changed them.
  void remember_of_script();
  const std::vector<std::shared_ptr<State>>& known() const { return known_; }
  // Adds the states of the model and the buffers that have changed, gives memory to all that have
  // none, and returns all.
  const std::vector<std::shared_ptr<State>>& all();

  // Saves all states. Refuses parameters that are not finite. Of a varying state it saves the value
  // of every coordinate, but only one of the states in `alike`, which are equal on all ranks now.
  // What several ranks have is divided among them if they are known to have the same values
  // (`compared`), else the lowest of them writes it. Returns the bytes that were copied in memory.
  uint64_t save(const std::string& directory, const CheckpointFacts& facts,
                const std::set<const State*>& alike, bool compared, const SaveHow& how);
  // The save that has begun last; null if it is finished.
  Saving* saving() const { return saving_ && !saving_->done() ? saving_.get() : nullptr; }
  // Every rank reads the directory. Throws Error on all ranks unless all have read the same.
  CheckpointFacts load(const std::string& directory);
  // Says once which tensors of a loaded checkpoint of another program no program of this run has
  // used: whoever made it may call a state by another name.
  void tell_unused() const;
  // Lets go of the checkpoint once its values lie in the states' memory.
  void forget_loaded();

  // If any rank has an error ("": none), throws it on all ranks.
  void throw_together(const std::string& error, const char* what) const;

 private:
  // The values of a state in a checkpoint.
  struct Loaded {
    Type type;
    std::vector<std::string> tensors;  // one, or one for each coordinate
    std::shared_ptr<const Checkpoint> from;
  };
  using LoadedByName = std::map<std::string, Loaded>;
  static LoadedByName by_state(const std::shared_ptr<const Checkpoint>& from);
  // Whether the loaded checkpoint has the state whose updates `s` counts, and not the count.
  bool was_not_counted(const std::shared_ptr<State>& s) const;
  void begin_at_loaded_step(State& count) const;
  void begin_with(const std::shared_ptr<State>& s, const Loaded& loaded);
  bool stands_for_several(const State& s, const Loaded& loaded) const;
  const Loaded* several(const State& s) const;  // null if the state stands for itself
  void check_fits(const LoadedByName& values, const std::string& directory);
  int64_t newest_before(int64_t step, const std::string& directory) const;
  void skip(const std::string& path, const std::string& next, const std::string& why) const;
  struct Opened {
    std::shared_ptr<const Checkpoint> checkpoint;
    std::string error;
    bool damaged = false;
  };
  Opened try_open(const std::string& path) const;
  std::shared_ptr<const Checkpoint> open(const std::string& directory) const;
  void compare_loaded(const Checkpoint& c) const;
  void tell_other_sums(const std::string& directory) const;

  void remember_model();
  // The name of a state in checkpoints: the one it had when a program of the run first used it; of
  // a state that none has used, its own. The script may rename it later: orrery.digest{a, b} does.
  const std::string& saved_name(const State& s) const;
  // Whether another run trains the parameter and has loaded it itself: that run's checkpoint may be
  // a step newer.
  bool is_left_to_its_run(const std::shared_ptr<State>& state) const;

  const RunSpec& spec_;
  std::vector<std::shared_ptr<State>> known_;
  std::map<const State*, std::string> names_;                      // of the known
  std::vector<std::pair<std::shared_ptr<State>, Loaded>> loaded_;  // and not forgotten yet
  // Loaded values of states that no program uses yet, such as optimizer states before the first
  // step.
  LoadedByName pending_;
  std::set<std::string> loaded_names_;  // of all states that the loaded checkpoint has
  int64_t loaded_step_ = 0;
  int ranks_;
  std::shared_ptr<Saving> saving_;
};

}  // namespace orrery
