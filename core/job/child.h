// SPDX-License-Identifier: Apache-2.0
//
// One rank as the launcher sees it: how it is started and where its lines come out.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace orrery {

// Passes whole lines on with a prefix.
class LinePrefixer {
 public:
  LinePrefixer(int from, int to, std::string prefix) : from_(from), to_(to), prefix_(std::move(prefix)) {}
  int fd() const { return from_; }
  bool at_end() const { return at_end_; }
  // Passes on what is there.
  void pump();
  // Passes on the rest, even without a newline, and closes.
  void finish();

 private:
  void write_lines(bool all);
  int from_, to_;
  std::string prefix_, pending_;
  bool at_end_ = false;
};

struct ChildSpec {
  int rank;
  std::string program;
  std::vector<std::string> argv, env;
  std::vector<int> cpus;     // to pin to; empty: none
  std::vector<int> inherit;  // descriptors to keep open
  bool owns_terminal;        // else input is empty and output is piped
};

struct Child {
  int rank;
  pid_t pid;
  std::vector<LinePrefixer> output;
  bool running = true;
  int code = 0;  // once ended: exit code, or 128 + signal
  int signal = 0;
};

Child start_child(const ChildSpec& spec);

}  // namespace orrery
