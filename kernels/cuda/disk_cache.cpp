// SPDX-License-Identifier: Apache-2.0
#include "disk_cache.h"

#define XXH_INLINE_ALL
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <orrery/sdk/plugin.hpp>

namespace orr_cuda {
namespace {

namespace fs = std::filesystem;

constexpr size_t digits = 32;  // of a hash

std::string hash_of(const std::string& text) {
  const XXH128_hash_t h = XXH3_128bits(text.data(), text.size());
  char hex[digits + 1];
  snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(h.high64),
           static_cast<unsigned long long>(h.low64));
  return hex;
}

std::string whole(const std::string& key, const std::string& value) {
  return hash_of(std::to_string(key.size()) + ' ' + key + value) + value;
}

// Empty if the user has no folder: code from a folder that others can write must not be loaded.
fs::path folder() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache) return fs::path(cache) / "orrery/cuda";
  return home && *home ? fs::path(home) / ".cache/orrery/cuda" : fs::path();
}

void warn(const std::string& text) { orr::host->log(ORR_LOG_WARN, ("cuda: " + text).c_str()); }

// Writes a file beside the path, and renames it.
bool replace(const fs::path& path, const std::string& text) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  std::string fresh = path.string() + ".XXXXXX";
  const int file = mkstemp(fresh.data());
  if (file < 0) return false;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (close(file) == 0 && written && rename(fresh.c_str(), path.c_str()) == 0) return true;
  const int why = errno;
  unlink(fresh.c_str());
  errno = why;
  return false;
}

}  // namespace

std::optional<std::string> kept_on_disk(const std::string& key) {
  const fs::path path = folder() / hash_of(key);
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string value = text.substr(std::min(digits, text.size()));
  if (text == whole(key, value)) return value;
  warn(path.string() + " is damaged: it is ignored, and replaced");
  return std::nullopt;
}

void keep_on_disk(const std::string& key, const std::string& value) {
  static bool told = false;
  const fs::path path = folder();
  if (path.empty() || replace(path / hash_of(key), whole(key, value)) || told) return;
  told = true;
  warn(path.string() + ": " + std::strerror(errno) +
       "; the next run compiles and measures again: "
       "name a folder that can be written with XDG_CACHE_HOME");
}

}  // namespace orr_cuda
