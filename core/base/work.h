// SPDX-License-Identifier: Apache-2.0
//
// What this process is doing at the moment. It answers so when another rank has waited long for it;
// a process that is stopped or dead gives no answer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace orrery {

// Names what the main thread does during this object's life; the innermost object counts.
// [main thread]
class Work {
 public:
  // How many deadlines other ranks wait for one rank's own work. Fewer for a script, which may loop
  // forever, than for the engine's own work, which is known to end.
  static constexpr int of_script = 10, of_engine = 60;

  // `what` is a text such as "saving a checkpoint", or the name of the function that a script has
  // called. REQUIRES: `what` lives as long as the process may answer.
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
  int deadlines = 0;  // to wait for it; 0: its work is not known; `waits`: it waits for other ranks
  std::string text;   // "saving a checkpoint for 12 s", "in the script at train.lua:7"
};
WorkAnswer current_work();  // [any thread]
// The same of the main thread alone: not of threads that wait, nor of plugins. [any thread]
WorkAnswer main_work();

// Notes that a thread of this process begins or stops waiting for other ranks. [any thread]
void note_wait(bool begins);

// Says in which plugin this process has been for long, "in 'launch' of kernel 'x' for 30 s": the
// answer begins with it. "": in none. [any thread]
void note_plugin(const std::string& text);

// Sets the function that finds the line which the script is executing; it is asked while no Work
// exists. Null: there is no script. Any thread calls `find`. [main thread]
void set_script_line(std::function<std::string()> find);

}  // namespace orrery
