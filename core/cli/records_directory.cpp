// SPDX-License-Identifier: Apache-2.0
#include "cli/records_directory.h"

#include <cctype>
#include <cstdlib>
#include <ctime>
#include <filesystem>

namespace orrery {

std::string records_directory(const std::string& script) {
  if (const char* given = std::getenv("ORRERY_NO_DIR"); given && *given) return "";
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char time[32] = "";
  std::strftime(time, sizeof time, "%Y-%m-%d-%H-%M-%S", &local);
  std::string name = std::filesystem::path(script).stem().string().substr(0, 100);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
  return std::string("runs/") + time + "-" + name;
}

}  // namespace orrery
