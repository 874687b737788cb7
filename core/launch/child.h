// SPDX-License-Identifier: Apache-2.0
//
// One process as the launcher sees it: how it is started and where its lines come out.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace orrery {

// Passes whole lines on with a prefix. Of one that has the mark, what follows it is kept back: what
// stands before was written by others, who had left their line without an end.
class LinePrefixer {
 public:
  LinePrefixer(int from, int to, std::string prefix, char mark)
      : from_(from), to_(to), prefix_(std::move(prefix)), mark_(mark) {}
  int fd() const { return from_; }
  bool at_end() const { return at_end_; }
  // Passes on what is there.
  void pump();
  const std::optional<std::string>& kept() const { return kept_; }  // last; none: no mark has come
  // The last line passed on, blank ones left out, where there is a mark.
  const std::string& last_words() const { return last_words_; }
  // Passes on the rest, even without a newline, and closes.
  void finish();

 private:
  void write_lines(bool all);
  std::string line_out(std::string line);
  int from_, to_;
  std::string prefix_, pending_, last_words_;
  std::optional<std::string> kept_;
  char mark_;
  bool at_end_ = false;
};

struct ChildSpec {
  int rank;
  std::string program;  // a path, or a name to look for in PATH
  std::vector<std::string> argv, env;
  std::vector<int> cpus;    // to pin to; empty: none
  bool owns_terminal;       // else input is empty, or given, and output is piped
  std::string prefix = {};  // of its lines
  char mark = 0;            // of what is kept back of its errors; 0: nothing is
  int input = -1;           // to read, without a terminal to ask at; -1: nothing
};

struct Child {
  int rank;
  pid_t pid;
  std::vector<LinePrefixer> output;
  bool running = true;
  int code = 0;  // once ended: exit code, or 128 + signal
  int signal = 0;
  std::string stopped = {};  // by which signal, while it is; what it was killed for, once ended
  std::chrono::steady_clock::time_point stopped_at{};
};

Child start_child(const ChildSpec& spec);

}  // namespace orrery
