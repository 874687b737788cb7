// SPDX-License-Identifier: Apache-2.0
//
// Tests of several processes: a test launches N ranks of its own program, each runs a named body,
// and the test looks at exit code, output and time.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ranks {

struct Outcome {
  int code;            // of the launcher, as `orrery run` would exit
  std::string output;  // stdout and stderr of launcher and ranks
  double seconds;
};

// Runs `body` on n ranks; `argument` reaches it as its argument, `env` holds "NAME=value".
Outcome run(int n, const std::string& body, const std::string& argument = "",
            const std::vector<std::string>& env = {});

// The same without waiting: the launcher's process id, and where its output goes.
struct Running {
  int pid;
  int output_fd;
};
Running start(int n, const std::string& body, const std::string& argument = "",
              const std::vector<std::string>& env = {});
Outcome finish(const Running& running);

// How often `word` occurs.
int count(const std::string& text, const std::string& word);

// Registers a body, at namespace scope. It returns the rank's exit code; an Error that it throws is
// printed, reported to the launcher and becomes its code.
struct Body {
  Body(const char* name, std::function<int(const std::string& argument)> run);
};

}  // namespace ranks
