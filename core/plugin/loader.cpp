// SPDX-License-Identifier: Apache-2.0
//
// Loads shared objects with Boost.DLL, and turns its failures into sentences for users.
#include "plugin/loader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/dll/shared_library.hpp>
#include <cstring>
#include <deque>
#include <string>

#include "base/machine.h"
#include "plugin/host.h"
#include "plugin/inside.h"

namespace orrery {
namespace fs = std::filesystem;
namespace {

const void* host_interface(const char* id, uint32_t version) {
  return std::strcmp(id, "host") == 0 && version == 1 ? &host_table() : nullptr;
}

[[noreturn]] void refuse(const fs::path& file, const char* stage, const std::string& why) {
  fail(ORR_UNAVAILABLE, "plugin {}: {}: {}", file.string(), stage, why);
}

struct stat facts_of(const fs::path& path, const char* what) {
  struct stat facts;
  if (stat(path.c_str(), &facts) != 0)
    fail(ORR_UNAVAILABLE, "{} cannot be examined ({}); check the path", what, strerror(errno));
  return facts;
}

void check_owner(const fs::path& path, const char* what) {
  const struct stat facts = facts_of(path, what);
  if (facts.st_mode & S_IWOTH)
    fail(ORR_UNAVAILABLE, "{} is writable by everyone; run chmod o-w {}", what, path.string());
  if ((facts.st_mode & S_IWGRP) && facts.st_gid != 0 && facts.st_gid != getegid())
    fail(ORR_UNAVAILABLE, "{} is writable by group {}, which is not yours; run chmod g-w {}", what,
         facts.st_gid, path.string());
  if (facts.st_uid != 0 && facts.st_uid != geteuid())
    fail(
        ORR_UNAVAILABLE,
        "{} belongs to user {}, neither to root nor to you ({}); copy the plugin to a directory of "
        "your own",
        what, facts.st_uid, geteuid());
}

// Whoever may write to a directory may rename those in it, and put others in their place, unless it
// is sticky (/tmp). So every directory above the file is checked.
void check_above(fs::path path) {
  for (; path != path.parent_path(); path = path.parent_path()) {
    const mode_t mode = facts_of(path, "a directory above it").st_mode;
    if ((mode & S_IWOTH) && !(mode & S_ISVTX))
      fail(ORR_UNAVAILABLE, "a directory above it is writable by everyone; run chmod o-w {}",
           path.string());
  }
}

// Boost's text is "boost::dll::shared_library::load() failed: <dlerror>: Bad file descriptor"; only
// the middle is about the failure.
std::string reason_of(std::string text) {
  static const std::string head = "load() failed: ", tail = ": Bad file descriptor";
  if (size_t at = text.find(head); at != std::string::npos) text.erase(0, at + head.size());
  if (size_t at = text.find(tail); at != std::string::npos) text.erase(at);
  if (text.find("libcuda.so.1: cannot open") != std::string::npos)
    return "no NVIDIA driver here; install the driver, or choose another plugin";
  if (text.find("undefined symbol") != std::string::npos)
    return text + "; link it with -Wl,-z,defs against what it uses";
  if (text.find("cannot open shared object file") != std::string::npos)
    return text + "; install the package that has this library";
  if (text.find("failed to map segment") != std::string::npos) return text + "; " + memory_bound();
  return text;
}

boost::dll::shared_library& load(const fs::path& file) {
  // Never destroyed: a plugin may have threads and statics, and others keep pointers into it, so
  // unloading it would crash.
  static auto& loaded = *new std::deque<boost::dll::shared_library>;
  try {
    return loaded.emplace_back(file,
                               boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  } catch (const std::exception& e) {
    refuse(file, "load", reason_of(e.what()));
  }
}

// Finds the plugin's descriptor. A library that the plugin links to may define the same symbol; the
// name in it distinguishes them.
const orr_plugin& symbol(boost::dll::shared_library& library, const fs::path& file,
                         const orr_plugin& expected) {
  static const char* name = "orrery_plugin";
  if (!library.has(name))
    refuse(file, "symbol", "it does not export 'orrery_plugin'; define it with ORR_PLUGIN");
  const orr_plugin& found = library.get<orr_plugin>(name);
  if (found.magic != expected.magic ||
      std::strncmp(found.name, expected.name, sizeof found.name) != 0)
    refuse(file, "symbol", "'orrery_plugin' is another library's; export the plugin's own symbol");
  if (!found.entry) refuse(file, "symbol", "its entry is null; give ORR_PLUGIN an entry function");
  return found;
}

}  // namespace

void check_trusted(const fs::path& file) {
  check_owner(file, "the file");
  check_owner(file.parent_path(), "its directory");
  check_above(file.parent_path().parent_path());
}

orr_exports open_plugin(const fs::path& file, const orr_plugin& expected) {
  const orr_bootstrap boot{sizeof boot, host_interface};
  orr_exports exports{sizeof exports, nullptr, nullptr, nullptr};
  open_plugin(file, expected, boot, exports);
  return exports;
}

void open_plugin(const fs::path& file, const orr_plugin& expected, const orr_bootstrap& boot,
                 orr_exports& out) {
  watch_for_sudden_ends();
  const char* subject = kept_text("plugin " + file.string());
  const orr_plugin& plugin = [&]() -> const orr_plugin& {
    const Inside inside({subject, "static objects"});
    return symbol(load(file), file, expected);
  }();
  const Inside inside({subject, "entry"});
  check(caught([&] { return plugin.entry(&boot, &out); }), "plugin " + file.string() + ": entry");
  if (!out.get) refuse(file, "entry", "it gave no 'get'; set orr_exports.get in its entry");
}

const void* ask(const orr_exports& exports, const char* id, uint32_t version,
                const std::string& plugin) {
  const Inside inside({kept_text(plugin), "get"});
  return exports.get(exports.self, id, version);
}

}  // namespace orrery
