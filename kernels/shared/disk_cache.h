// SPDX-License-Identifier: Apache-2.0
//
// For kernel plugins: what one took time to find out and holds for the next run too. There is a
// file for each key in orrery/<plugin>/ of XDG_CACHE_HOME, or else of ~/.cache. It is named by a
// hash of the key, and begins with a hash of key and value. It appears as a whole, so that ranks
// and jobs may write it at the same time. The folder may be deleted at any time.
#pragma once

#define XXH_INLINE_ALL
#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include <orrery/sdk/plugin.hpp>

namespace orr_kernels {

// Of one plugin, by its name. [any thread]
class DiskCache {
 public:
  explicit DiskCache(std::string plugin) : plugin_(std::move(plugin)) {}

  // While it lives, no other thread or process of this user makes the value of this key: ranks that
  // want the same wait for the first one, and find it kept. Nobody waits for longer than a minute,
  // nor where the folder cannot be written.
  class Lock {
   public:
    Lock(const DiskCache& cache, const std::string& key) : file_(cache.locked(key)) {}
    ~Lock() {
      if (file_ >= 0) close(file_);
    }
    Lock(const Lock&) = delete;

   private:
    int file_;
  };

  // The value that was kept; empty if there is none. A damaged file counts as none, and is logged.
  std::optional<std::string> kept(const std::string& key) const {
    const Path path = folder() / hash_of(key);
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::nullopt;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::string value = text.substr(std::min(kDigits, text.size()));
    if (text == whole(key, value)) return value;
    warn(path.string() + " is damaged: it is ignored, and replaced");
    return std::nullopt;
  }

  // Keeps a value, and returns whether it could. If not, that is logged once, and the next run does
  // without.
  bool keep(const std::string& key, const std::string& value) const {
    static std::atomic<bool> told = false;
    const Path path = folder();
    if (path.empty()) return false;
    if (replace(path / hash_of(key), whole(key, value))) return true;
    if (told.exchange(true)) return false;
    warn(path.string() + ": " + std::strerror(errno) +
         "; the next run compiles and measures again: "
         "name a folder that can be written with XDG_CACHE_HOME");
    return false;
  }

 private:
  using Path = std::filesystem::path;
  static constexpr size_t kDigits = 32;  // of a hash

  static std::string hash_of(const std::string& text) {
    const XXH128_hash_t h = XXH3_128bits(text.data(), text.size());
    char hex[kDigits + 1];
    snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(h.high64),
             static_cast<unsigned long long>(h.low64));
    return hex;
  }
  static std::string whole(const std::string& key, const std::string& value) {
    return hash_of(std::to_string(key.size()) + ' ' + key + value) + value;
  }
  void warn(const std::string& text) const {
    orr::host->log(ORR_LOG_WARN, (plugin_ + ": " + text).c_str());
  }

  // Empty if the user has no folder: code from a folder that others can write must not be loaded.
  Path folder() const {
    const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
    if (cache && *cache) return Path(cache) / "orrery" / plugin_;
    return home && *home ? Path(home) / ".cache/orrery" / plugin_ : Path();
  }

  // A byte of one file beside the folder stands for each key.
  int locked(const std::string& key) const {
    constexpr std::chrono::milliseconds patience{60'000}, pause{2};
    const Path path = folder();
    if (path.empty()) return -1;
    std::error_code failed;
    std::filesystem::create_directories(path.parent_path(), failed);
    const int file = open((path.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return file;
    struct flock byte {};
    byte.l_type = F_WRLCK, byte.l_whence = SEEK_SET, byte.l_len = 1;
    byte.l_start = static_cast<off_t>(XXH3_64bits(key.data(), key.size()) >> 2);
    const auto end = std::chrono::steady_clock::now() + patience;
    while (fcntl(file, F_OFD_SETLK, &byte) != 0 && (errno == EAGAIN || errno == EACCES) &&
           std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(pause);
    return file;
  }

  // Writes a file beside the path, and renames it.
  static bool replace(const Path& path, const std::string& text) {
    std::error_code failed;
    std::filesystem::create_directories(path.parent_path(), failed);
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

  std::string plugin_;
};

}  // namespace orr_kernels
