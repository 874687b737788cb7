// SPDX-License-Identifier: Apache-2.0
//
// What strategies ask of a step besides its mesh: hooks that write parts of it, programs that run
// between steps or beside them, and the driver that decides when each rank runs which. Lowering
// needs none of it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "program/program.h"
#include "program/train.h"

struct orr_driver;

namespace orrery {

// A program over the states of a step that runs after every `every` steps. There may be several
// variants, `rounds`, that take turns; the hook `write` is called once for each.
struct Periodic {
  std::string origin, line;
  int every = 1;
  std::function<void(Program&, int round)> write;
  int n_rounds = 1;
  std::vector<std::shared_ptr<const Program>> rounds = {};
};

// A program that one rank runs beside the step, over states of the step and of its own.
struct Beside {
  std::string name;
  int rank = 0;
  std::shared_ptr<Program> program;
};

// A strategy's driver: it decides when a rank runs which program (orrery/driver.h).
struct Driving {
  std::string origin, line;                  // strategy, its Lua file:line
  std::shared_ptr<const orr_driver> driver;  // null: the ranks take steps together
  std::function<void(Program& step, const std::vector<int64_t>& leaf_first)> write;
  std::map<std::string, ValueId> gradients;  // as the optimizer gets them, by parameter name
  std::vector<Beside> programs;
  bool on() const { return driver != nullptr; }
};

// A strategy's hook that is called once the update is written. `decides`: it may have the whole
// step not count, as loss scaling does where a gradient overflows; it is called after the others,
// and `what` names the number that all its ranks share, such as "loss scale". `last`: it is called
// when all edits are done.
struct CompleteHook {
  enum When : int8_t { step, decides, last };
  std::string origin, line, what;
  When when = step;
  std::function<void(Program&, ValueId loss, ValueId squared_norm)> call;
};

struct Asked {
  ValueId cotangent = kNone;            // the scalar with which backward begins; kNone: 1
  std::vector<GradientHook> exchanges;  // in place of gradients' sums; gone when a step is complete
  std::vector<CompleteHook> completing;  // likewise
  std::vector<Periodic> periodic;
  Driving driving;
  std::vector<std::string> remarks;  // for the user, with the strategy that has them
};

}  // namespace orrery
