// SPDX-License-Identifier: Apache-2.0
#include "disk_cache.h"

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <orrery/sdk/plugin.hpp>

namespace orr_cuda {
namespace {

namespace fs = std::filesystem;

using std::chrono::steady_clock;

constexpr size_t digits = 32;                                    // of a hash
constexpr std::chrono::milliseconds patience{60'000}, pause{2};  // of a lock

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

// A byte of one file beside the folder stands for each key.
DiskLock::DiskLock(const std::string& key) : file_(-1) {
  const fs::path path = folder();
  if (path.empty()) return;
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  file_ = open((path.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0) return;
  struct flock byte {};
  byte.l_type = F_WRLCK, byte.l_whence = SEEK_SET, byte.l_len = 1;
  byte.l_start = static_cast<off_t>(XXH3_64bits(key.data(), key.size()) >> 2);
  const auto end = steady_clock::now() + patience;
  while (fcntl(file_, F_OFD_SETLK, &byte) != 0 && (errno == EAGAIN || errno == EACCES) &&
         steady_clock::now() < end)
    std::this_thread::sleep_for(pause);
}

DiskLock::~DiskLock() {
  if (file_ >= 0) close(file_);
}

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

bool keep_on_disk(const std::string& key, const std::string& value) {
  static std::atomic<bool> told = false;
  const fs::path path = folder();
  if (path.empty()) return false;
  if (replace(path / hash_of(key), whole(key, value))) return true;
  if (told.exchange(true)) return false;
  warn(path.string() + ": " + std::strerror(errno) +
       "; the next run compiles and measures again: "
       "name a folder that can be written with XDG_CACHE_HOME");
  return false;
}

}  // namespace orr_cuda
