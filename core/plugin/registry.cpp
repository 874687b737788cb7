// SPDX-License-Identifier: Apache-2.0
//
// Finding plugins and keeping their tables.
#include "plugin/registry.h"

#include <orrery/facts.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/config.h"
#include "base/error.h"
#include "base/places.h"
#include "base/text.h"
#include "plugin/elf.h"
#include "plugin/host.h"
#include "plugin/loader.h"
#include "plugin/services.h"
#include "plugin/tables.h"

namespace orrery {
namespace fs = std::filesystem;
namespace {

// Plugin files under a place: itself if it is a file, else the shared objects below it, sorted.
std::vector<fs::path> objects(const fs::path& place) {
  std::error_code error;
  if (fs::is_regular_file(place, error)) return {place};
  std::vector<fs::path> found;
  for (fs::recursive_directory_iterator it(place, error), end; !error && it != end;
       it.increment(error))
    if (it->path().extension() == ".so" && it->is_regular_file(error)) found.push_back(it->path());
  std::sort(found.begin(), found.end());
  return found;
}

// Checks an entry of ORRERY_PLUGIN_PATH. A relative one is refused: it would load plugins from the
// current directory, where anybody may have put them.
fs::path listed_place(const std::string& place) {
  if (place[0] != '/')
    fail(ORR_INVALID,
         "ORRERY_PLUGIN_PATH: '{}' would be looked up in the current directory; write {}", place,
         (fs::current_path() / place).lexically_normal().string());
  if (std::error_code error; !fs::exists(place, error))
    fail(ORR_INVALID,
         "ORRERY_PLUGIN_PATH: {} does not exist; take it out, or name a directory or a .so file",
         place);
  return place;
}

std::vector<fs::path> search_path(const std::vector<fs::path>& added) {
  std::vector<fs::path> places = added;
  if (const char* listed = std::getenv("ORRERY_PLUGIN_PATH")) {
    std::istringstream list(listed);
    for (std::string place; std::getline(list, place, ':');)
      if (!place.empty()) places.push_back(listed_place(place));
  }
  if (const fs::path& tree = build_tree(); !tree.empty()) {
    places.push_back(tree / "kernels");
    places.push_back(tree / "plugins");
  } else {
    for (const fs::path& place : installed_places(ORRERY_PLUGINDIR)) places.push_back(place);
  }
  return places;
}

PluginFile examine(const fs::path& path) {
  PluginFile file{path, {}, ""};
  try {
    file.descriptor = read_descriptor(path);
    check_trusted(path);
  } catch (const Error& e) {
    file.refusal = e.what();
  }
  return file;
}

bool side_by_side(const PluginFile& a, const PluginFile& b) {
  return a.path.parent_path() == b.path.parent_path();
}

bool same_name(const PluginFile& a, const PluginFile& b) {
  return (a.descriptor.kinds & b.descriptor.kinds) &&
         std::string_view(a.descriptor.name) == b.descriptor.name;
}

// Whether these are two builds of one comm plugin; other kinds have one build each.
bool are_builds(const PluginFile& a, const PluginFile& b) {
  return a.descriptor.kinds == ORR_KIND_COMM && b.descriptor.kinds == ORR_KIND_COMM &&
         side_by_side(a, b);
}

// Decides between two files of one name. The earlier entry of the search path hides the later; if
// both are of one entry, both are refused, because nobody can say which the user meant.
void settle(PluginFile& first, PluginFile& second) {
  if (!second.refusal.empty() || !same_name(first, second) || are_builds(first, second)) return;
  if (!side_by_side(first, second)) {
    second.refusal =
        fmt::format("hidden by {}, which comes first in the search path", first.path.string());
    return;
  }
  const auto beside = [](const PluginFile& other) {
    return fmt::format("{} beside it has the same name '{}'; remove one of the two",
                       other.path.filename().string(), other.descriptor.name);
  };
  if (first.refusal.empty()) first.refusal = beside(second);
  second.refusal = beside(first);
}

// A file whose descriptor cannot be read is still recognised by its name, orrery-<kind>-<name>.so,
// so that a broken plugin is reported as broken and not as unknown.
bool answers_to(const PluginFile& file, uint32_t kind, const std::string& name) {
  if (file.descriptor.magic) return (file.descriptor.kinds & kind) && name == file.descriptor.name;
  return file.path.filename() == fmt::format("orrery-{}-{}.so", kind_name(kind), name);
}

bool lists(const PluginFile& file, std::string_view id) {
  for (uint32_t i = 0; file.refusal.empty() && i < file.descriptor.n_interfaces; ++i)
    if (file.descriptor.interfaces[i].id == id) return true;
  return false;
}

uint32_t only_version_1(const PluginFile& file, const std::string& id) {
  for (uint32_t i = 0; i < file.descriptor.n_interfaces; ++i) {
    const orr_interface_id& served = file.descriptor.interfaces[i];
    if (served.id != id) continue;
    if (served.min <= 1 && served.max >= 1) return 1;
    fail(ORR_UNAVAILABLE,
         "plugin {}: interface: it serves {}/{} to {}/{} and this program speaks {}/1; install "
         "versions that fit",
         file.path.string(), id, served.min, id, served.max, id);
  }
  fail(ORR_UNAVAILABLE,
       "plugin {}: interface: its descriptor does not list '{}'; add it to ORR_PLUGIN",
       file.path.string(), id);
}

}  // namespace

const char* kind_name(uint32_t kind) {
  switch (kind) {
    case ORR_KIND_KERNEL: return "kernel";
    case ORR_KIND_COMM: return "comm";
    case ORR_KIND_STRATEGY: return "strategy";
    case ORR_KIND_OBSERVER: return "observer";
    case ORR_KIND_OP: return "op";
    case ORR_KIND_DATA: return "data";
    case kind_boot: return "boot";
    default: return "device";
  }
}

std::string kinds_text(uint32_t kinds) {
  std::string text;
  for (uint32_t kind = ORR_KIND_KERNEL; kind != 0; kind *= 2)
    if (kinds & kind) text += (text.empty() ? "" : "+") + std::string(kind_name(kind));
  return text;
}

Registry& Registry::get() {
  // Never destroyed: plugins may still be called while the process exits.
  static Registry& registry = *[] {
    auto* made = new Registry;
    made->scan();
    return made;
  }();
  return registry;
}

void Registry::add(const fs::path& path) {
  if (!fs::exists(path))
    fail(ORR_INVALID, "plugin path {} does not exist; name a directory or a .so file",
         path.string());
  added_.insert(added_.begin(), path);
  scan();
}

void Registry::scan() {
  files_.clear();
  for (const fs::path& place : search_path(added_)) {
    for (const fs::path& object : objects(place)) {
      fs::path path = fs::canonical(object);
      auto same = [&](const PluginFile& f) { return f.path == path; };
      if (std::none_of(files_.begin(), files_.end(), same)) files_.push_back(examine(path));
    }
  }
  for (size_t i = 0; i < files_.size(); ++i)
    for (size_t j = 0; j < i; ++j) settle(files_[j], files_[i]);
}

std::vector<std::string> Registry::names(uint32_t kind) const {
  std::vector<std::string> names;
  for (const PluginFile& file : files_)
    if (file.refusal.empty() && (file.descriptor.kinds & kind))
      names.push_back(file.descriptor.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool Registry::loads(uint32_t kind, const std::string& name) {
  if (not_loaded_.count({kind, name})) return false;
  try {
    if (kind == ORR_KIND_KERNEL) kernel(name);
    if (kind == ORR_KIND_OBSERVER) observer(name);
    if (kind == ORR_KIND_OP) op(name);
    if (kind == kind_boot) boot(name);
    return true;
  } catch (const Error& e) {
    not_loaded_[{kind, name}] = e.what();
    if (warns_) spdlog::warn("{} '{}' is not used: {}", kind_name(kind), name, e.what());
    return false;
  }
}

std::string Registry::not_loaded(uint32_t kind) const {
  std::string text;
  for (const auto& [plugin, why] : not_loaded_)
    if (plugin.first == kind)
      text += fmt::format("; {} '{}' could not be loaded: {}", kind_name(kind), plugin.second, why);
  return text;
}

const PluginFile& Registry::find(uint32_t kind, const std::string& name) const {
  const PluginFile* other = nullptr;
  for (const PluginFile& file : files_) {
    if (name == file.descriptor.name) other = &file;
    if (!answers_to(file, kind, name)) continue;
    // It is an error, or a plugin of this name further on in the search path would silently be
    // used.
    if (!file.refusal.empty())
      fail(ORR_UNAVAILABLE, "{} '{}': plugin {}: file: {}", kind_name(kind), name,
           file.path.string(), file.refusal);
    return file;
  }
  const std::vector<std::string> known = names(kind);
  if (other)
    fail(ORR_INVALID, "{} '{}': plugin {}: kind: it is a {} plugin, not {}; name one of: {}",
         kind_name(kind), name, other->path.string(), kinds_text(other->descriptor.kinds),
         kind_name(kind), known.empty() ? "none found" : join(known, ", "));
  std::vector<std::string> places;
  for (const fs::path& place : search_path(added_)) places.push_back(place.string());
  fail(ORR_INVALID,
       "no plugin provides {0} '{1}'{2}; found: {3}; looked for orrery-{0}-{1}.so in {4}: install "
       "it "
       "there, or name its place in ORRERY_PLUGIN_PATH",
       kind_name(kind), name, did_you_mean(name, known), known.empty() ? "none" : join(known, ", "),
       join(places, ", "));
}

std::vector<const PluginFile*> Registry::builds(uint32_t kind, const std::string& name) const {
  const PluginFile& first = find(kind, name);
  std::vector<const PluginFile*> builds;
  for (const PluginFile& file : files_)
    if (file.refusal.empty() && (file.descriptor.kinds & kind) && name == file.descriptor.name)
      builds.push_back(&file);
  if (builds.empty()) builds.push_back(&first);
  return builds;
}

template <class T>
const T& Registry::table(const std::string& interface, const PluginFile& file) {
  std::shared_ptr<void>& kept = tables_[{interface, file.path}];
  if (kept) return *static_cast<T*>(kept.get());
  const uint32_t version = only_version_1(file, interface);
  auto opened = opened_.find(file.path);
  if (opened == opened_.end())
    opened = opened_.emplace(file.path, open_plugin(file.path, file.descriptor)).first;
  const orr_exports& exports = opened->second;
  const std::string plugin =
      fmt::format("{} '{}' ({})", interface, file.descriptor.name, file.path.string());
  const void* given = ask(exports, interface.c_str(), version, plugin);
  if (!given)
    fail(ORR_UNAVAILABLE,
         "plugin {}: interface: it gave no table for {}/{} that its descriptor lists",
         file.path.string(), interface, version);
  try {
    kept = complete_table<T>(given, plugin);
  } catch (const Error& e) {
    fail(e.code(), "plugin {}: interface: {}", file.path.string(), e.what());
  }
  return *static_cast<T*>(kept.get());
}

std::vector<std::pair<std::string, std::string>> Registry::facts(const PluginFile& file) {
  using Facts = std::vector<std::pair<std::string, std::string>>;
  Facts all;
  if (!lists(file, "facts") || !opened_.count(file.path)) return all;
  const auto& api = table<orr_facts_api>("facts", file);
  const auto say = [](void* to, const char* name, const char* text) {
    static_cast<Facts*>(to)->emplace_back(name, text);
  };
  check(api.tell(api.self, say, &all), "plugin " + file.path.string() + ": facts");
  return all;
}

const orr_kernel_api& Registry::kernel(const std::string& name) {
  return table<orr_kernel_api>(kind_name(ORR_KIND_KERNEL), find(ORR_KIND_KERNEL, name));
}
const orr_comm_api& Registry::comm(const std::string& name) {
  const std::vector<const PluginFile*> candidates = builds(ORR_KIND_COMM, name);
  if (candidates.size() == 1) return comm(*candidates.front());
  std::string reasons;
  for (const PluginFile* file : candidates) {
    try {
      const orr_comm_api& api = comm(*file);
      orr_comm_caps caps{};
      caps.size = sizeof caps;
      char reason[256] = "";
      if (api.probe(api.self, &caps, reason, sizeof reason)) return api;
      reasons += fmt::format("\n  {}: {}", file->path.string(), reason);
    } catch (const Error& e) {
      reasons += fmt::format("\n  {}", e.what());
    }
  }
  fail(ORR_UNAVAILABLE, "no build of comm '{}' works here:{}", name, reasons);
}
const orr_comm_api& Registry::comm(const PluginFile& file) {
  return table<orr_comm_api>(kind_name(ORR_KIND_COMM), file);
}
const orr_strategy_api& Registry::strategy(const std::string& name) {
  return table<orr_strategy_api>(kind_name(ORR_KIND_STRATEGY), find(ORR_KIND_STRATEGY, name));
}
const orr_observer_api& Registry::observer(const std::string& name) {
  return table<orr_observer_api>(kind_name(ORR_KIND_OBSERVER), find(ORR_KIND_OBSERVER, name));
}
const orr_op_api& Registry::op(const std::string& name) {
  return table<orr_op_api>(kind_name(ORR_KIND_OP), find(ORR_KIND_OP, name));
}
const orr_data_api& Registry::data(const std::string& name) {
  return table<orr_data_api>(kind_name(ORR_KIND_DATA), find(ORR_KIND_DATA, name));
}
const orr_device_api& Registry::device(const std::string& name) {
  return name == "host"
             ? services::host_device()
             : table<orr_device_api>(kind_name(ORR_KIND_DEVICE), find(ORR_KIND_DEVICE, name));
}
const orr_boot_api& Registry::boot(const std::string& name) {
  return table<orr_boot_api>(kind_name(kind_boot), find(kind_boot, name));
}
const orr_storage_api& Registry::storage(const std::string& address) {
  for (const PluginFile& file : files_) {
    if (!lists(file, "storage")) continue;
    const auto& api = table<orr_storage_api>("storage", file);
    if (api.serves(api.self, address.c_str())) return api;
  }
  fail(ORR_UNAVAILABLE,
       "'{}': no plugin keeps files at such addresses; `orrery doctor` says which were left out of "
       "this build",
       address);
}

std::vector<const orr_checkpoint_api*> Registry::checkpoints() {
  std::vector<const orr_checkpoint_api*> found;
  for (const PluginFile& file : files_) {
    if (!lists(file, "checkpoint")) continue;
    const auto& api = table<orr_checkpoint_api>("checkpoint", file);
    if (!api.format || !api.manifest)
      fail(ORR_UNAVAILABLE,
           "plugin {}: interface: checkpoint/1 names no format or no manifest; fill both fields",
           file.path.string());
    found.push_back(&api);
  }
  return found;
}

}  // namespace orrery
