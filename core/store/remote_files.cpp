// SPDX-License-Identifier: Apache-2.0
#include "store/remote_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <regex>

#include "base/digest.h"
#include "base/error.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "store/file.h"
#include "store/manifest.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot(const std::string& path, const char* what, int error) {
  fail(ORR_FAILED, "'{}' cannot be {}: {}; XDG_CACHE_HOME may name another folder for copies", path,
       what, std::strerror(error));
}

fs::path copies() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::string cache = variable("XDG_CACHE_HOME");
  if (cache.empty() && !variable("HOME").empty()) cache = variable("HOME") + "/.cache";
  if (cache.empty())
    fail(ORR_INVALID, "there is no folder for copies of files of servers; set XDG_CACHE_HOME");
  fs::path place = fs::absolute(cache) / "orrery" / "checkpoints";
  std::error_code error;
  fs::create_directories(place, error);
  if (error) cannot(place.string(), "made", error.value());
  return place;
}

RemoteFiles::State state_of(const orr_stored_file& file) {
  return {file.there != 0, std::string(file.version, strnlen(file.version, sizeof file.version))};
}

}  // namespace

bool is_address(const std::string& path) {
  static const std::regex pattern("[A-Za-z][A-Za-z0-9+.-]*://[^]*");
  return std::regex_match(path, pattern);
}

std::string address_in(const std::string& address, const std::string& name) {
  return address + (address.ends_with('/') ? "" : "/") + name;
}

RemoteFiles::RemoteFiles(const std::string& address) : api_(&Registry::get().storage(address)) {}

RemoteFiles::State RemoteFiles::get(const std::string& address, const std::string& path) const {
  orr_stored_file file{};
  file.size = sizeof file;
  check(api_->get(api_->self, address.c_str(), path.c_str(), &file));
  return state_of(file);
}

RemoteFiles::State RemoteFiles::get_text(const std::string& address, std::string& text) const {
  const TemporaryFolder folder;
  const std::string path = folder.file("text");
  File::create(path, path).finish();
  const State state = get(address, path);
  text = state.there ? read_manifest_text(File::open(AT_FDCWD, path, address, false)) : "";
  return state;
}

bool RemoteFiles::put(const std::string& address, const std::string& path,
                      const std::optional<State>& before) const {
  orr_stored_file file{};
  file.size = sizeof file;
  const bool judges = before && !(before->there && before->version.empty());
  check(api_->put(api_->self, address.c_str(), path.c_str(),
                  judges ? before->version.c_str() : nullptr, &file));
  return state_of(file).there;
}

bool RemoteFiles::put_text(const std::string& address, const std::string& text,
                           const std::optional<State>& before) const {
  const TemporaryFolder folder;
  const std::string path = folder.file("text");
  File file = File::create(path, path);
  file.write(text.data(), text.size());
  file.finish();
  return put(address, path, before);
}

std::vector<std::string> RemoteFiles::list(const std::string& prefix) const {
  std::vector<std::string> found;
  const auto give = [](void* to, const char* address) {
    static_cast<std::vector<std::string>*>(to)->emplace_back(address);
  };
  try {
    check(api_->list(api_->self, prefix.c_str(), give, &found));
  } catch (const Error& e) {
    if (e.code() != ORR_UNIMPLEMENTED) throw;
  }
  return found;
}

void RemoteFiles::remove(const std::string& address) const {
  check(api_->remove(api_->self, address.c_str()));
}

TemporaryFolder::TemporaryFolder() : path_((copies() / "XXXXXX").string()) {
  if (!::mkdtemp(path_.data())) cannot(path_, "made", errno);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

SharedCopy::SharedCopy(const RemoteFiles& files, const std::string& address,
                       const std::string& identity, uint64_t bytes) {
  Digest name;
  name.add(identity.data(), identity.size());
  path_ = (copies() / fmt::format("{}-{}", name.text(), bytes)).string();
  while (fd_ < 0) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0) cannot(path_, "opened", errno);
    try {
      while (::flock(fd_, LOCK_EX) != 0)
        if (errno != EINTR) cannot(path_, "locked", errno);
      std::error_code error;
      if (is_in_place() && fs::file_size(path_, error) != bytes)
        there_ = files.get(address, path_).there;
    } catch (...) {
      close();
      throw;
    }
    // Between the two locks, another may have removed it.
    if (::flock(fd_, LOCK_SH) != 0 || !is_in_place()) ::close(std::exchange(fd_, -1));
  }
}

SharedCopy::~SharedCopy() { close(); }

// Whether the path still leads to the file that is locked.
bool SharedCopy::is_in_place() const {
  struct stat own {
  }, now{};
  return ::fstat(fd_, &own) == 0 && ::stat(path_.c_str(), &now) == 0 && own.st_ino == now.st_ino &&
         own.st_dev == now.st_dev;
}

void SharedCopy::close() {
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0 && is_in_place()) ::unlink(path_.c_str());
  ::close(fd_);
}

}  // namespace orrery
