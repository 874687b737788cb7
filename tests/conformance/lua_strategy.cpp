// SPDX-License-Identifier: Apache-2.0
#include "conformance/lua_strategy.h"

#include <orrery/strategy.h>

#include <map>

#include "base/error.h"
#include "conformance/scripts.h"

namespace orrery::judge {
namespace {

constexpr const char* ask = R"(local made = require("MODULE")
local built, entry = pcall(function() return made {} end)
if not built then error(entry, 0) end
if type(entry) ~= "table" or not entry.script then error "returns no strategy" end
print("says name " .. entry.name)
print("says class " .. entry.script.class)
print("says requires " .. (entry.script.requires or ""))
)";

std::string module_of(const Subject& subject) { return subject.path.stem().string(); }

}  // namespace

Said said_by_lua(const Subject& subject) {
  static const std::map<std::string, int32_t> classes = {
      {"exact", ORR_CLASS_EXACT}, {"stale", ORR_CLASS_STALE}, {"approx", ORR_CLASS_APPROX}};
  std::string text = ask;
  text.replace(text.find("MODULE"), 6, module_of(subject));
  const ScriptRun run = run_text(subject, false, text, {}, 60);
  const std::string name = run.lines("says name ");
  if (run.code != 0 || name.empty())
    fail(ORR_INVALID,
         "{}: a strategy's file returns what strategy.define has made, which can be called without "
         "options; it ended so: {}",
         subject.path.string(), run.output);
  return {name, classes.at(run.lines("says class ")), run.lines("says requires "),
          "require(\"" + module_of(subject) + "\") {}"};
}

void link_neighbours(const std::filesystem::path& file, const std::filesystem::path& directory) {
  const std::filesystem::path folder = file.parent_path();
  std::filesystem::create_directory_symlink(folder, directory / folder.filename());
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (const auto link = directory / entry.path().filename(); !std::filesystem::exists(link))
      std::filesystem::create_symlink(entry.path(), link);
}

}  // namespace orrery::judge
