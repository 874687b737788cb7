// SPDX-License-Identifier: Apache-2.0
//
// `orrery new plugin KIND NAME`: makes a project of three files from templates, which passes
// `orrery check` before its author has written a line. Templates have @name@ in them.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/config.h"
#include "base/error.h"
#include "base/places.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/plugin_survey.h"
#include "lua/script.h"
#include "plugin/registry.h"

namespace orrery {
namespace fs = std::filesystem;
namespace {

const std::vector<std::string> kinds = {"kernel", "comm", "strategy", "observer", "op", "data"};

fs::path template_directory() {
  if (!build_tree().empty()) return ORRERY_SOURCE_TEMPLATEDIR;
  for (const fs::path& place : installed_places(ORRERY_TEMPLATEDIR))
    if (fs::is_directory(place)) return place;
  fail(ORR_UNAVAILABLE, "the templates are not installed in {}; install the program again",
       installed_places(ORRERY_TEMPLATEDIR).back().string());
}

void check_name(const std::string& name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  const bool letter_first = !name.empty() && name[0] >= 'a' && name[0] <= 'z';
  if (!letter_first || name.size() > 31 || !std::all_of(name.begin(), name.end(), good))
    fail(ORR_INVALID,
         "a plugin cannot be called '{}'; use up to 31 of a-z, 0-9 and _, a letter first", name);
}

// Throws Error if a plugin of this kind and name exists: one would hide the other.
void check_free(const std::string& kind, const std::string& name) {
  const auto refuse = [&](const std::string& place) {
    fail(ORR_INVALID, "there is a {} '{}' already, in {}; choose another name", kind, name, place);
  };
  for (const PluginFile& file : Registry::get().files())
    for (uint32_t bit = ORR_KIND_KERNEL; bit <= ORR_KIND_DATA; bit *= 2)
      if ((file.descriptor.kinds & bit) && kind == kind_name(bit) && name == file.descriptor.name)
        refuse(file.path.string());
  const std::vector<std::string> scripted = scripted_strategies();
  if (kind == "strategy" && std::count(scripted.begin(), scripted.end(), name))
    refuse(lua_library() + "/orrery/strategy");
}

std::string read_template(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in)
    fail(ORR_UNAVAILABLE, "the template {} cannot be read; install the program again",
         file.string());
  return text.str();
}

// Replaces the keys between @ in a template by their values.
std::string filled(std::string text,
                   const std::vector<std::pair<std::string, std::string>>& replacements) {
  for (const auto& [key, value] : replacements)
    for (size_t at = 0; (at = text.find("@" + key + "@", at)) != std::string::npos;
         at += value.size())
      text.replace(at, key.size() + 2, value);
  return text;
}

void write_file(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out) fail(ORR_FAILED, "{} cannot be written; check the disk", file.string());
}

void make_project(const std::string& kind, const std::string& name, bool c) {
  if (!std::count(kinds.begin(), kinds.end(), kind))
    fail(ORR_INVALID, "there is no plugin kind '{}'{}; there are: {}", kind,
         did_you_mean(kind, kinds), join(kinds, ", "));
  check_name(name);
  check_free(kind, name);
  const fs::path from = template_directory(), to = name;
  const std::string extension = c ? "c" : "cpp", source = name + "." + extension;
  std::error_code error;
  if (!fs::create_directory(to, error))
    fail(ORR_INVALID, "directory {} {}; choose another name, or go elsewhere", name,
         error ? "cannot be made (" + error.message() + ")" : "is there already");
  const std::vector<std::pair<std::string, std::string>> replacements = {
      {"name", name},
      {"kind", kind},
      {"source", source},
      {"language", extension},
      {"standard", c ? "c_std=c11" : "cpp_std=c++20"}};
  write_file(to / source, filled(read_template(from / (kind + "." + extension)), replacements));
  write_file(to / "meson.build", filled(read_template(from / "meson.build.in"), replacements));
  write_file(to / "README.md", filled(read_template(from / ("README." + kind + ".md")) +
                                          read_template(from / "README.md.in"),
                                      replacements));
  std::printf(
      "made %s/; build and judge it:\n"
      "  cd %s && meson setup build && meson compile -C build\n"
      "  orrery check build/orrery-%s-%s.so\n",
      name.c_str(), name.c_str(), kind.c_str(), name.c_str());
}

}  // namespace

void add_new(CLI::App& app) {
  struct Choice {
    std::string what, kind, name;
    bool c = false;
  };
  auto choice = std::make_shared<Choice>();
  CLI::App* command = app.add_subcommand("new", R"(Start a plugin of your own
Examples:
  orrery new plugin comm mine
  orrery new plugin kernel swift --c)");
  command->add_option("what", choice->what, "What to start: plugin")
      ->required()
      ->check(CLI::IsMember({"plugin"}));
  command->add_option("kind", choice->kind, "kernel, comm, strategy, observer, op or data")
      ->required();
  command->add_option("name", choice->name, "What users will call it")->required();
  command->add_flag("--c", choice->c, "in plain C instead of C++");
  command->callback([choice] { make_project(choice->kind, choice->name, choice->c); });
}

}  // namespace orrery
