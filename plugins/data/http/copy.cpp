// SPDX-License-Identifier: Apache-2.0
#include "copy.h"

#include <cstdio>
#include <filesystem>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../refuse.h"
#include "address.h"
#include "download.h"
#include "local_file.h"
#include "settings.h"
#include "transfer.h"

namespace data {
namespace {

namespace fs = std::filesystem;

std::string hex(XXH128_hash_t hash) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}
std::string digest(const std::string& text) { return hex(XXH3_128bits(text.data(), text.size())); }

fs::path folder_of(const std::string& address, const std::string& url) {
  const std::string cache = cache_folder();
  if (cache.empty())
    refuse(shown(address), ": there is no folder for its copy; set XDG_CACHE_HOME");
  return fs::path(cache) / "orrery" / "http" / names_of(url).host;
}

// One file of a server, on its way.
class Copy {
 public:
  explicit Copy(const std::string& url)
      : url_(url),
        access_(access_of(url)),
        folder_(folder_of(url, access_.url)),
        name_(names_of(access_.url).file),
        made_(made(folder_)),
        lock_(folder_ / (digest(access_.url) + ".lock")) {
    lock_.lock();
    part_path_ = folder_ / (digest(access_.url) + ".part");
    XXH3_128bits_reset(&hash_);
  }

  std::string path() {
    try {
      LocalFile part(part_path_);
      const auto wanted = [this](const Reply& reply) { return restart(reply); };
      const auto came = [this](const char* bytes, size_t count) {
        XXH3_128bits_update(&hash_, bytes, count);
      };
      const Outcome outcome = download(url_, access_, part, wanted, came);
      if (!outcome.complete) fail(ORR_FAILED, shown(url_), ": ", outcome.fault);
      if (!is_there_) keep(part);
    } catch (...) {
      remove_part();
      throw;
    }
    if (is_there_) remove_part();
    return found_.string();
  }

 private:
  static bool made(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
      fail(ORR_FAILED, folder.string(), " cannot be made: ", error.message(),
           "; XDG_CACHE_HOME may name another folder for copies");
    return true;
  }
  void remove_part() const {
    std::error_code ignored;
    fs::remove(part_path_, ignored);
  }

  // All of it comes, perhaps of another state of the file than before.
  bool restart(const Reply& reply) {
    version_ = reply.version();
    if (!version_.empty()) {
      found_ = place(version_ + "\n" + std::to_string(reply.length));
      std::error_code error;
      const auto size = fs::file_size(found_, error);
      is_there_ = !error && (reply.length < 0 || static_cast<int64_t>(size) == reply.length);
    }
    XXH3_128bits_reset(&hash_);
    return !is_there_;
  }
  fs::path place(const std::string& state) const {
    return folder_ / digest(access_.url + "\n" + state) / name_;
  }
  // Where the server does not tell states of the file apart, its contents do.
  void keep(const LocalFile& part) {
    part.sync();
    if (version_.empty()) found_ = place(hex(XXH3_128bits_digest(&hash_)));
    std::error_code error;
    fs::create_directories(found_.parent_path(), error);
    if (!error) fs::rename(part_path_, found_, error);
    if (error)
      fail(ORR_FAILED, found_.string(), " cannot be written: ", error.message(),
           "; XDG_CACHE_HOME may name another folder for copies");
  }

  const std::string url_;
  const Access access_;
  const fs::path folder_;
  const std::string name_;
  const bool made_;  // the folder
  const LocalFile lock_;
  fs::path part_path_, found_;
  bool is_there_ = false;
  std::string version_;  // of what has been begun
  XXH3_state_t hash_;
};

}  // namespace

std::string copy_of(const std::string& url) { return Copy(url).path(); }

}  // namespace data
