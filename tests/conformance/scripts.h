// SPDX-License-Identifier: Apache-2.0
//
// A small model trained by this program, as a user would, with or without the plugin on trial.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/test.h"

namespace orrery::judge {

// A directory that goes away with the object.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ~ScratchDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct ScriptRun {
  int code;  // ORR_DEADLINE: its time was over
  double seconds;
  std::string output;

  // The lines "bits ...": every loss and the digest of all parameters, the same on every rank.
  std::string bits() const { return lines("bits "); }
  // "traffic RANK sent N predicted M" of every rank.
  std::string traffic() const { return lines("traffic "); }
  std::string lines(const std::string& beginning) const;
};

// Runs the script with these words in front of it. The plugin is in front of the search path, or
// not in it.
ScriptRun run_text(const Subject& subject, bool with_plugin, const std::string& text,
                   const std::vector<std::string>& words, int seconds);

// A small model that trains under the strategies, Lua expressions with commas between; from the
// checkpoint `load`, and into `save` after its first half, unless these are "".
std::string model_script(const Subject& subject, const std::string& strategies,
                         const std::string& load = "", const std::string& save = "");

// Whether the training is saved after its first half and another goes on from there.
enum class Halt { none, saved_and_loaded };

// Trains on n ranks under the strategies, Lua expressions with commas between ("" for none). The
// plugin is in front of the search path, or not in it.
ScriptRun run_script(const Subject& subject, bool with_plugin, const std::string& strategies,
                     int ranks, int seconds = 60, Halt halt = Halt::none);

}  // namespace orrery::judge
