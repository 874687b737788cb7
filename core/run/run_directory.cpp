// SPDX-License-Identifier: Apache-2.0
#include "run/run_directory.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "run/agree.h"
#include "run/run.h"
#include "store/checkpoint.h"
#include "store/writer_lock.h"

namespace fs = std::filesystem;

namespace orrery {
namespace {

// Whether it could be locked against other jobs; if not, a warning says so. Throws Locked.
bool lock(const std::string& directory, const std::string& label) try {
  hold_writer_lock(directory, label, kRunning);
  return true;
} catch (const Locked&) {
  throw;
} catch (const Error& e) {
  spdlog::warn("{}; a second job in this directory would not be noticed", e.what());
  return false;
}

// Makes `wanted`, or with a number behind it where another job of the same second has that name.
// A job that was started again goes on in the directory that it has made. Returns "" if none can be
// made.
std::string make_directory(const std::string& wanted, Observers& to) {
  for (int i = 1;; ++i) {
    const std::string path = i == 1 ? wanted : fmt::format("{}-{}", wanted, i);
    std::error_code error;
    fs::create_directories(fs::path(path).parent_path(), error);
    const bool fresh = !error && fs::create_directory(path, error);
    if (error) {
      spdlog::warn("{}: {}: nothing of this run is recorded; --dir names another directory", path,
                   error.message());
      return "";
    }
    if (!fresh && writer_job().start < 2) continue;
    try {
      to.fact("run/locked", lock(path, path));
    } catch (const Locked&) {
      continue;
    }
    spdlog::info("this run is recorded in {} (--no-dir: nowhere)", path);
    return path;
  }
}

}  // namespace

// Why the directory cannot be used, or "".
std::string RunDirectory::refusal(const World& world, Observers& to) {
  if (!path_.empty()) return "";
  const std::string &named = runtime_options().run_directory, &records = runtime_options().records;
  if (named.empty()) {
    if (world.rank == 0 && !records.empty()) path_ = make_directory(records, to);
    return "";
  }
  std::error_code error;
  if (!fs::create_directories(named, error) && error)
    return fmt::format("--dir {}: {}; name a directory that can be made", named, error.message());
  if (world.rank == 0) try {
      to.fact("run/locked", lock(named, "--dir " + named));
    } catch (const Locked& e) {
      return e.what();
    }
  path_ = named;
  return "";
}

void RunDirectory::take(const World& world, Observers& to) {
  if (const std::string refused = refusal(world, to); !refused.empty())
    throw Error(ORR_FAILED, refused);
}

void RunDirectory::take_together(const World& world, Observers& to) {
  if (world.size == 1) return take(world, to);
  const std::string refused = refusal(world, to);
  if (!runtime_options().run_directory.empty()) {
    fail_together(refused, "the run's directory", "");
  } else {
    path_ = text_of_rank_0(path_, "the run's directory");
    std::error_code ignored;  // what cannot be made cannot be written to: observers say so
    if (!path_.empty()) fs::create_directories(path_, ignored);
  }
}

void RunDirectory::leave() {
  if (!path_.empty()) drop_writer_lock(path_, kRunning);
  path_.clear();
}

}  // namespace orrery
