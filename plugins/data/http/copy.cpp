// SPDX-License-Identifier: Apache-2.0
#include "copy.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../refuse.h"
#include "address.h"
#include "settings.h"
#include "transfer.h"

namespace data {
namespace {

namespace fs = std::filesystem;

constexpr int kTries = 5;                                    // in a row that bring nothing
constexpr int64_t kMostWaitS = 60;                           // of what servers ask for
constexpr auto kFirstWait = std::chrono::milliseconds(500);  // then twice as long, and so on

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

// An open file. Errors name its path.
class Descriptor {
 public:
  explicit Descriptor(const fs::path& path)
      : path_(path.string()), file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (file_ < 0) failed("opened");
  }
  ~Descriptor() { ::close(file_); }
  Descriptor(const Descriptor&) = delete;

  void lock() const {
    while (::flock(file_, LOCK_EX) != 0)
      if (errno != EINTR) failed("locked");
  }
  void shorten(int64_t size) const {
    if (::ftruncate(file_, size) != 0 || ::lseek(file_, size, SEEK_SET) < 0) failed("written");
  }
  void write(const char* bytes, size_t count) const {
    while (count > 0) {
      const ssize_t done = ::write(file_, bytes, count);
      if (done < 0 && errno != EINTR) failed("written");
      if (done > 0) bytes += done, count -= static_cast<size_t>(done);
    }
  }
  void sync() const {
    if (::fsync(file_) != 0) failed("written");
  }

 private:
  [[noreturn]] void failed(const char* what) const {
    fail(ORR_FAILED, path_, " cannot be ", what, ": ", std::strerror(errno),
         "; XDG_CACHE_HOME may name another folder for copies");
  }
  const std::string path_;
  const int file_;
};

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
    Descriptor part(part_path_);
    for (int tries = 1;; ++tries) {
      const int64_t before = size_;
      const Outcome outcome = attempt(part);
      if (outcome.complete && (is_there_ || is_all(outcome.reply))) break;
      if (!outcome.complete && !outcome.may_pass) refused(outcome.fault, 1);
      if (size_ > before) tries = 1;
      if (tries == kTries) refused(outcome.complete ? "it ends too early" : outcome.fault, tries);
      pause(tries, outcome.wait_s);
    }
    if (is_there_)
      fs::remove(part_path_);
    else
      keep(part);
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
  [[noreturn]] void refused(const std::string& why, int tries) const {
    std::error_code ignored;
    fs::remove(part_path_, ignored);
    fail(ORR_FAILED, shown(url_), ": ", why,
         tries > 1 ? " (tried " + std::to_string(tries) + " times)" : "");
  }

  Outcome attempt(const Descriptor& part) {
    const Request request{access_, strong_.empty() ? 0 : size_, strong_};
    const auto begin = [&](const Reply& reply) {
      if (reply.length < 0 && !reply.chunked)
        refused("the server does not say how long it is, so that a part would pass for all", 1);
      if (reply.begin != 0 && !continues(reply)) {
        strong_.clear(), size_ = 0;  // all of it at the next try
        return false;
      }
      if (reply.begin == 0) restart(part, reply);
      return !is_there_;
    };
    return transfer(request, begin, [&](const char* bytes, size_t count) {
      part.write(bytes, count);
      XXH3_128bits_update(&hash_, bytes, count);
      size_ += static_cast<int64_t>(count);
    });
  }
  // Whether it is the rest of what has come. Replies of parts may leave a date out, not an ETag.
  bool continues(const Reply& reply) const {
    const bool is_same =
        reply.version() == strong_ || (reply.version().empty() && !strong_.starts_with('"'));
    return is_same && reply.begin == size_;
  }
  // All of it comes, perhaps of another state of the file than before.
  void restart(const Descriptor& part, const Reply& reply) {
    version_ = reply.version(), strong_ = reply.strong();
    if (!version_.empty()) {
      found_ = place(version_ + "\n" + std::to_string(reply.length));
      std::error_code error;
      const auto size = fs::file_size(found_, error);
      is_there_ = !error && (reply.length < 0 || static_cast<int64_t>(size) == reply.length);
    }
    part.shorten(0);
    size_ = 0, XXH3_128bits_reset(&hash_);
  }
  bool is_all(const Reply& reply) const { return reply.length < 0 || reply.length == size_; }
  fs::path place(const std::string& state) const {
    return folder_ / digest(access_.url + "\n" + state) / name_;
  }
  // Where the server does not tell states of the file apart, its contents do.
  void keep(const Descriptor& part) {
    part.sync();
    if (version_.empty()) found_ = place(hex(XXH3_128bits_digest(&hash_)));
    std::error_code error;
    fs::create_directories(found_.parent_path(), error);
    if (!error) fs::rename(part_path_, found_, error);
    if (error)
      fail(ORR_FAILED, found_.string(), " cannot be written: ", error.message(),
           "; XDG_CACHE_HOME may name another folder for copies");
  }
  static void pause(int tries, int64_t asked_s) {
    std::chrono::milliseconds wait = kFirstWait * (1 << (tries - 1));
    wait = std::max<std::chrono::milliseconds>(wait,
                                               std::chrono::seconds(std::min(asked_s, kMostWaitS)));
    std::this_thread::sleep_for(wait);
  }

  const std::string url_;
  const Access access_;
  const fs::path folder_;
  const std::string name_;
  const bool made_;  // the folder
  const Descriptor lock_;
  fs::path part_path_, found_;
  bool is_there_ = false;
  std::string version_, strong_;  // of what has been begun
  int64_t size_ = 0;              // of what has come
  XXH3_state_t hash_;
};

}  // namespace

std::string copy_of(const std::string& url) { return Copy(url).path(); }

}  // namespace data
