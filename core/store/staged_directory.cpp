// SPDX-License-Identifier: Apache-2.0
#include "store/staged_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "store/file.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

void make_parents(const fs::path& directory) {
  if (fs::exists(directory)) return;
  make_parents(directory.parent_path());
  if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST)
    fail(ORR_FAILED, "directory '{}' cannot be created: {}", directory.string(),
         write_error(errno));
  sync_directory(directory.parent_path());
}

std::string nonce() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

// 0, or why not.
int rename_with(const std::string& from, const std::string& to, unsigned flags) {
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0 ? 0 : errno;
}

}  // namespace

StagedDirectory::StagedDirectory(const std::string& final_path)
    : final_(final_path),
      parent_(fs::path(final_path).parent_path()),
      path_(fmt::format("{}.tmp-{}-{}", final_path, ::getpid(), nonce())) {
  make_parents(parent_);
  if (::mkdir(path_.c_str(), 0777) != 0)
    fail(ORR_FAILED, "directory '{}' cannot be created: {}", path_, write_error(errno));
}

StagedDirectory::~StagedDirectory() {
  // What cannot be removed stays as a dead writer's leftover would.
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void StagedDirectory::commit() {
  sync_directory(path_);
  // Exchange: a plain rename onto a directory needs it to be empty, and so a moment with neither.
  bool replaces = fs::exists(final_);
  unsigned flags = replaces ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  int error = rename_with(path_, final_, flags);
  if (error == EINVAL)
    fail(ORR_FAILED, "'{}' cannot be put in place: its file system cannot {}; {}", final_,
         replaces ? "swap two directories" : "rename without replacing",
         replaces ? "save under a new name" : "save elsewhere");
  if (error) fail(ORR_FAILED, "'{}' cannot be put in place: {}", final_, write_error(error));
  try {
    sync_directory(parent_);
  } catch (const Error&) {
    if (replaces) rename_with(path_, final_, RENAME_EXCHANGE);
    if (!replaces) rename_with(final_, path_, RENAME_NOREPLACE);
    throw;
  }
}

}  // namespace orrery
