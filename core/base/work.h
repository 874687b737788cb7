// SPDX-License-Identifier: Apache-2.0
//
// What this process is at by itself: its answer to a rank that has waited for it for long. A
// process that is stopped, or dead, gives none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace orrery {

// Names what the main thread does while this lives; the innermost is what counts. [main thread]
class Work {
 public:
  // How many deadlines the others wait for one rank's own work: a script may loop forever, of what
  // the engine does itself it is known that it ends.
  static constexpr int of_script = 10, of_engine = 60;

  // "saving a checkpoint", or of a script the name of what it has called. REQUIRES: `what` outlives
  // the process's answers.
  Work(const char* what, int deadlines);
  ~Work();
  Work(const Work&) = delete;

 private:
  const char* outer_;
  int outer_deadlines_;
  int64_t outer_since_;
};

struct WorkAnswer {
  static constexpr int waits = -1;
  int deadlines = 0;  // 0: nothing that is known; `waits`: it waits for other ranks
  std::string text;   // "saving a checkpoint for 12 s", "in the script at train.lua:7"
};
WorkAnswer current_work();  // [any thread]

// A thread of this process begins, or ends, to wait for other ranks. [any thread]
void note_wait(bool begins);

// How to find the line that a script is at while no Work is named; null: there is no script.
// `find` is called by any thread. [main thread]
void set_script_line(std::function<std::string()> find);

}  // namespace orrery
