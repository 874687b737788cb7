// SPDX-License-Identifier: Apache-2.0
#include "store/own_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <regex>

#include "base/error.h"
#include "store/file.h"

namespace orrery {
namespace {

constexpr const char* kMark = ".orrery-folder";
// Of a folder that gets its mark and then its name, or that is being removed.
constexpr const char* kUnfinished = "checkpoint.folder.new";
constexpr int kAsDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

std::string mark_of(const std::string& folder) {
  return fmt::format("orrery-checkpoint, folder {}\n", folder);
}

// The names that write_shard gives, and those that plugins do (orrery/checkpoint.h).
bool is_data_file(const std::string& name) {
  static const std::regex pattern(
      "shard-[0-9]{5,}-(model-[0-9]{5,}-of-[0-9]{5,}\\.safetensors|plugin-.*)");
  return std::regex_match(name, pattern);
}

std::vector<std::string> names_at(int directory) {
  std::vector<std::string> names;
  const int fd = ::openat(directory, ".", kAsDirectory);
  DIR* open = fd < 0 ? nullptr : ::fdopendir(fd);
  if (!open && fd >= 0) ::close(fd);
  if (!open) return names;
  while (const dirent* entry = ::readdir(open))
    if (const std::string name = entry->d_name; name != "." && name != "..") names.push_back(name);
  ::closedir(open);
  return names;
}

void write_mark(const std::string& directory, const std::string& folder) {
  const std::string path = directory + "/" + kMark, text = mark_of(folder);
  File mark = File::create(path, fmt::format("checkpoint file '{}'", path));
  mark.write(text.data(), text.size());
  mark.finish();
}

}  // namespace

void make_marked_folder(const std::string& directory, const std::string& name) {
  const std::string unfinished = directory + "/" + kUnfinished, path = directory + "/" + name;
  if (::mkdir(unfinished.c_str(), 0777) != 0)
    fail(ORR_FAILED, "directory '{}' cannot be created: {}", unfinished, write_error(errno));
  write_mark(unfinished, name);
  sync_directory(unfinished);
  if (::rename(unfinished.c_str(), path.c_str()) != 0)
    fail(ORR_FAILED, "directory '{}' cannot be created: {}", path, write_error(errno));
  sync_directory(directory);
}

// A folder that is open, with the name by which it was found.
class OwnFiles::Folder {
 public:
  Folder(int at, const std::string& name)
      : name(name), fd(::openat(at, name.c_str(), kAsDirectory)) {}
  ~Folder() {
    if (fd >= 0) ::close(fd);
  }
  Folder(const Folder&) = delete;

  bool has_its_mark() const {
    const int file = ::openat(fd, kMark, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return false;
    const std::string wanted = mark_of(name);
    std::string text(wanted.size() + 1, '\0');
    const ssize_t n = ::pread(file, text.data(), text.size(), 0);
    ::close(file);
    return n == std::ssize(wanted) && text.starts_with(wanted);
  }
  // Begun and not named yet, or being removed.
  bool is_unfinished() const {
    return name == kUnfinished && fd >= 0 && std::ranges::all_of(names_at(fd), [](auto& inner) {
             return inner == kMark || is_data_file(inner);
           });
  }

  const std::string name;
  const int fd;
};

OwnFiles::OwnFiles(const std::string& directory, const std::string& label)
    : path_(directory), label_(label), fd_(::open(directory.c_str(), kAsDirectory)) {
  if (fd_ < 0)
    fail(ORR_FAILED, "{}: directory '{}' cannot be opened: {}", label, directory,
         write_error(errno));
}

OwnFiles::~OwnFiles() { ::close(fd_); }

std::vector<std::string> OwnFiles::names() const { return names_at(fd_); }

bool OwnFiles::is_own_folder(const std::string& name) const {
  const Folder folder(fd_, name);
  return folder.is_unfinished() || (folder.fd >= 0 && folder.has_its_mark());
}

bool OwnFiles::is_link(const std::string& name) const {
  struct stat facts;
  return ::fstatat(fd_, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(facts.st_mode);
}

bool OwnFiles::stays(const std::string& name, const std::string& why) const {
  tell_once(
      fmt::format("{}: '{}/{}' is not needed any more and stays: {}", label_, path_, name, why));
  return false;
}

bool OwnFiles::remove_file(const std::string& name) const {
  if (::unlinkat(fd_, name.c_str(), 0) == 0) return true;
  return errno == ENOENT ? false : stays(name, std::strerror(errno));
}

bool OwnFiles::remove_directory(const std::string& name) const {
  if (::unlinkat(fd_, name.c_str(), AT_REMOVEDIR) == 0) return true;
  return stays(name, std::strerror(errno));
}

// Removes data files, of all names or of these. Returns false, and has told why, if any stays, or
// there is something else.
bool OwnFiles::empty(const Folder& folder, const std::set<std::string>* files) const {
  std::string others;
  for (const std::string& name : names_at(folder.fd)) {
    if (name == kMark) continue;
    if (!is_data_file(name) || (files && !files->contains(name))) {
      others = name;
    } else if (::unlinkat(folder.fd, name.c_str(), 0) != 0 && errno != ENOENT) {
      return stays(folder.name + "/" + name, std::strerror(errno));
    }
  }
  if (others.empty()) return true;
  ::unlinkat(folder.fd, kMark, 0);  // from now on the folder is its owner's
  return stays(folder.name, fmt::format("it holds '{}', which is not of a checkpoint", others));
}

bool OwnFiles::remove_own_folder(const std::string& name) const {
  if (!empty(Folder(fd_, name), nullptr)) return false;
  // From now on no other rank of a job that has failed can begin a file in it, and a crash leaves
  // no folder without a mark.
  if (name != kUnfinished && ::renameat(fd_, name.c_str(), fd_, kUnfinished) != 0)
    return stays(name, std::strerror(errno));
  const Folder moved(fd_, kUnfinished);
  if (!empty(moved, nullptr)) return false;
  if (::unlinkat(moved.fd, kMark, 0) != 0 && errno != ENOENT)
    return stays(kUnfinished, std::strerror(errno));
  return remove_directory(kUnfinished);
}

bool OwnFiles::remove_folder(const std::string& name, const std::set<std::string>& files) const {
  const Folder folder(fd_, name);
  if (folder.fd < 0 && errno == ENOENT) return false;
  // Moved elsewhere, and replaced by a link: that is removed, and what it leads to stays.
  if (folder.fd < 0) return is_link(name) ? remove_file(name) : stays(name, std::strerror(errno));
  return empty(folder, &files) && remove_directory(name);
}

}  // namespace orrery
