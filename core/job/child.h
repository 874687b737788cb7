// SPDX-License-Identifier: Apache-2.0
//
// One process as the launcher sees it: how it is started and where its lines come out.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace orrery {

// Passes whole lines on with a prefix. The last one that begins with the mark, if there is one, is
// kept back.
class LinePrefixer {
 public:
  LinePrefixer(int from, int to, std::string prefix, char mark)
      : from_(from), to_(to), prefix_(std::move(prefix)), mark_(mark) {}
  int fd() const { return from_; }
  bool at_end() const { return at_end_; }
  // Passes on what is there.
  void pump();
  const std::string& kept() const { return kept_; }  // without the mark
  // Passes on the rest, even without a newline, and closes.
  void finish();

 private:
  void write_lines(bool all);
  int from_, to_;
  std::string prefix_, pending_, kept_;
  char mark_;
  bool at_end_ = false;
};

struct ChildSpec {
  int rank;
  std::string program;  // a path, or a name to look for in PATH
  std::vector<std::string> argv, env;
  std::vector<int> cpus;     // to pin to; empty: none
  std::vector<int> inherit;  // descriptors to keep open
  bool owns_terminal;        // else input is empty, or given, and output is piped
  std::string prefix = {};   // of its lines
  char mark = 0;             // of a line that is kept back; 0: none is
  int input = -1;            // to read; -1: nothing
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
