// SPDX-License-Identifier: Apache-2.0
#include "launch/ancestor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace orrery {
namespace {

bool has_one(pid_t process, const std::vector<std::string>& variables) {
  std::ifstream environment(fmt::format("/proc/{}/environ", process), std::ios::binary);
  for (std::string entry; std::getline(environment, entry, '\0');)
    if (std::any_of(variables.begin(), variables.end(),
                    [&](const std::string& name) { return entry.starts_with(name + "="); }))
      return true;
  return false;
}

pid_t parent_of(pid_t process) {
  std::ifstream stat(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(stat, text);
  char state;
  pid_t parent = 0;
  std::istringstream(text.substr(text.rfind(')') + 1)) >> state >> parent;
  return parent;
}

}  // namespace

pid_t ancestor_without(const std::vector<std::string>& variables) {
  pid_t process = getppid();
  while (process > 1 && has_one(process, variables)) process = parent_of(process);
  return process;
}

}  // namespace orrery
