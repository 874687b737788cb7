// SPDX-License-Identifier: Apache-2.0
//
// A process that a launcher starts, and the lines that it prints.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "launch/front.h"

namespace orrery {

// Passes on whole lines with a prefix. Without one, the beginning of a line waits for its rest for
// 0.1 s only: it may be a prompt or a row of dots. Of a line that has the mark, the part behind it
// is kept and not passed on. The part in front of it was printed by other processes that did not
// end their line.
class LinePrefixer {
 public:
  LinePrefixer(int from, Outlet& to, std::string prefix, char mark)
      : from_(from), to_(&to), prefix_(std::move(prefix)), mark_(mark) {}
  int fd() const { return from_; }
  // Whether to read on: there may be more, and it has room where it goes to.
  bool is_open() const { return !at_end_ && to_->has_room(); }
  // Whether the beginning of a line waits.
  bool holds() const { return is_plain() && !pending_.empty(); }
  // Passes on the lines that have come: all, or as long as there is room.
  void pump(bool all = false);
  // The text behind the last mark; none: no mark has come.
  const std::optional<std::string>& kept() const { return kept_; }
  // The last line that was passed on and is not blank, if lines may have a mark.
  const std::string& last_line() const { return last_line_; }
  // Passes on the rest, even if it has no newline, and closes the source.
  void finish();

  static constexpr std::chrono::milliseconds holding{100};

 private:
  bool is_plain() const { return prefix_.empty() && !mark_; }
  void write_lines(bool all);
  std::string line_out(std::string line);
  int from_;
  Outlet* to_;
  std::string prefix_, pending_, last_line_;
  std::optional<std::string> kept_;
  char mark_;
  bool at_end_ = false;
  std::chrono::steady_clock::time_point came_{};  // the last bytes
};

struct ChildSpec {
  int rank;
  std::string program;  // a path, or a name to look for in PATH
  std::vector<std::string> argv, env;
  std::vector<int> cpus;  // CPUs to pin it to; empty: it is not pinned
  // Whether stdin, stdout and stderr are this process's own; else `input`, and pipes to it.
  bool owns[3];
  std::string prefix = {};  // of its lines
  char mark = 0;            // of the text to keep in its stderr (LinePrefixer); 0: there is none
  int input = -1;           // its stdin; it then has no terminal; -1: an empty one
};

struct Child {
  int rank;
  pid_t pid;
  std::vector<LinePrefixer> output;
  bool running = true;
  int code = 0;  // once it has ended: its exit code, or 128 + signal
  int signal = 0;
  // The signal that has stopped it ("signal 19 (Stopped)"); "" if it runs. Still set after it has
  // ended if it was killed for being stopped.
  std::string stopped = {};
  std::chrono::steady_clock::time_point stopped_at{};
};

// What it prints goes to `front`, which must live as long as the child.
Child start_child(const ChildSpec& spec, Front& front);

}  // namespace orrery
