// SPDX-License-Identifier: Apache-2.0
#include "conformance/scripts.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "conformance/lua_strategy.h"
#include "conformance/process.h"

namespace orrery::judge {
namespace {

// A model with what strategies look for: an embedding, blocks in a list, norms, layers with biases,
// dropout, an optimizer with state, microbatches that three ranks do not share evenly and a ragged
// batch.
constexpr const char* script = R"(local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
orrery.seed(SEED)

local Block = nn.module("Block", function(m)
  m.norm, m.a, m.b, m.drop = nn.layernorm(24), nn.linear(24, 48), nn.linear(48, 24), nn.dropout(0.1)
  return function(x) return x + m.drop(m.b(nn.gelu(m.a(m.norm(x))))) end
end)
local Model = nn.module("Model", function(m)
  m.tok, m.blocks, m.norm = nn.embedding(30, 24), nn.sequential(3, function() return Block() end), nn.layernorm(24)
  m.head = nn.linear(24, 30)
  return function(ids) return m.head(m.norm(m.blocks(m.tok(ids)))) end
end)

local model = Model()
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
  params = model, optimizer = optim.adamw { lr = 1e-2 }, clip = 0.5, microbatches = 8, strategy = { STACK },
})
if "LOAD" ~= "" then run:load "LOAD" end
for step = run.steps + 1, "SAVE" ~= "" and 2 or 4 do
  local x, y = {}, {}
  for i = 1, step == 4 and 9 or 12 do
    x[i], y[i] = {}, {}
    for j = 1, 8 do x[i][j], y[i][j] = (step * 7 + i * 5 + j * (i + 3)) % 30, (i * j + step) % 30 end
  end
  local loss = run:step { x = orrery.tensor(x, "i32"), y = orrery.tensor(y, "i32") }
  local mean = loss:mean()
  if orrery.world.rank == 0 then print(("bits loss %.17g"):format(mean)) end
end
if "SAVE" ~= "" then
  run:save "SAVE"
  return
end
local digest, used = orrery.digest(model), run:counters()
if orrery.world.rank == 0 then print("bits digest " .. digest) end
print(("traffic %d sent %d predicted %d"):format(orrery.world.rank, used.bytes_sent, used.predicted_bytes_sent))
)";

std::string replaced(std::string text, const std::string& word, const std::string& by) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
    text.replace(at, word.size(), by);
  return text;
}

}  // namespace

ScratchDirectory::ScratchDirectory() {
  std::string name = std::filesystem::temp_directory_path() / "orrery-check-XXXXXX";
  if (!mkdtemp(name.data()))
    fail(ORR_FAILED, "cannot make a directory {} ({})", name, std::strerror(errno));
  path_ = name;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string ScriptRun::lines(const std::string& beginning) const {
  std::istringstream in(output);
  std::vector<std::string> found;
  for (std::string line; std::getline(in, line);)
    if (const size_t at = line.find(beginning); at != std::string::npos)
      found.push_back(line.substr(at + beginning.size()));
  std::string all;
  for (const std::string& line : found) all += (all.empty() ? "" : ", ") + line;
  return all;
}

ScriptRun run_text(const Subject& subject, bool with_plugin, const std::string& text,
                   const std::vector<std::string>& words, int seconds) {
  const ScratchDirectory directory;
  const std::filesystem::path file = directory.path() / "model.lua";
  std::ofstream(file) << text;
  if (subject.is_lua()) link_neighbours(subject.path, directory.path());
  std::vector<std::string> all = {"run"};
  all.insert(all.end(), words.begin(), words.end());
  all.push_back(file.string());
  const Ended ended = run_orrery(
      all,
      {"ORRERY_PLUGIN_PATH=" + (with_plugin && !subject.is_lua() ? subject.path.string() : ""),
       "ORRERY_DEADLINE=10"},
      seconds);
  return {ended.late ? ORR_DEADLINE : ended.code, ended.seconds, ended.output};
}

std::string model_script(const Subject& subject, const std::string& strategies,
                         const std::string& load, const std::string& save) {
  std::string text = replaced(script, "SEED", std::to_string(subject.seed));
  text = replaced(std::move(text), "STACK", strategies);
  return replaced(replaced(std::move(text), "LOAD", load), "SAVE", save);
}

ScriptRun run_script(const Subject& subject, bool with_plugin, const std::string& strategies,
                     int ranks, int seconds, Halt halt) {
  const ScratchDirectory directory;
  const std::string saved = (directory.path() / "saved").string();
  const auto run = [&](const std::string& load, const std::string& save) {
    return run_text(subject, with_plugin, model_script(subject, strategies, load, save),
                    {"-n", std::to_string(ranks)}, seconds);
  };
  if (halt == Halt::none) return run("", "");
  const ScriptRun first = run("", saved);
  if (first.code != 0) return first;
  const ScriptRun rest = run(saved, "");
  return {rest.code, first.seconds + rest.seconds, first.output + rest.output};
}

}  // namespace orrery::judge
