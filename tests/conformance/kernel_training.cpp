// SPDX-License-Identifier: Apache-2.0
//
// A kernel plugin in training: small models on one rank and on three whose microbatches are not
// shared evenly, so that their results lie apart in memory.
#include <fmt/ranges.h>

#include <cmath>
#include <sstream>

#include "base/error.h"
#include "base/process.h"
#include "conformance/kernel_parts.h"
#include "conformance/scripts.h"

namespace orrery::judge {
namespace {

constexpr int kSeconds = 60;

// Of matrix products, pointwise expressions and sums alone, where HEAD says so; a device whose only
// kernels are such ones must train it.
constexpr const char* script = R"(local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
orrery.seed(1)
local model = nn.sequential { nn.linear(3, 10), nn.tanh, nn.linear(10, 4) }
local run = orrery.compile(function(b) return nn.mse(HEAD, b.y) end,
  { params = model, optimizer = optim.sgd { lr = 0.1 }, microbatches = 8 })
for step = 1, 8 do
  local x, y = {}, {}
  for i = 1, step == 3 and 17 or 24 do
    x[i] = { i / 24, (i * 7 % 11) / 11, (i * step % 5) / 5 }
    y[i] = { (i * 5 % 13) / 13, 0.5, i / 40, 0.25 }
  end
  local mean = run:step { x = orrery.tensor(x), y = orrery.tensor(y) }:mean()
  if orrery.world.rank == 0 then print(("bits loss %.17g"):format(mean)) end
end
local digest = orrery.digest(model)
if orrery.world.rank == 0 then print("bits digest " .. digest) end
)";

std::string with_head(const std::string& head) {
  std::string text = script;
  return text.replace(text.find("HEAD"), 4, head);
}

// Whether the kernels of its device compute all of the model; on a host the others help.
bool trains(const Subject& subject, const std::string& text) {
  std::vector<std::string> words;
  const std::string device = kernel_of(subject).device;
  if (device != "host") words = {"--kernels", subject.name()};
  const auto on = [&](int ranks) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"-n", std::to_string(ranks)});
    return run_text(subject, true, text, all, kSeconds);
  };
  const ScriptRun alone = on(1);
  if (alone.code == ORR_UNAVAILABLE &&
      alone.output.find("no kernel plugin computes") != std::string::npos)
    return false;
  const ScriptRun three = on(3);
  for (const ScriptRun* run : {&alone, &three})
    if (run->code != 0 || run->bits().empty())
      throw Fault("kernel.h: \"it does so for every call\"",
                  fmt::format("a small model that trains on {}",
                              run == &alone ? "one rank" : "three ranks, in 8 microbatches"),
                  run->code == ORR_DEADLINE
                      ? fmt::format("no end after {} s", kSeconds)
                      : fmt::format("{}: {}", describe_code(run->code), run->output));
  if (alone.bits() != three.bits())
    throw Fault("kernel.h: \"equal id = equal bits\"",
                "on three ranks the bits of one: " + alone.bits(), three.bits());
  return true;
}

void training(const Subject& subject) {
  require_device(subject);
  bool trained = false;
  for (const std::string& text : {model_script(subject, "strategy.data {}"),
                                  with_head("model(b.x):softmax()"), with_head("model(b.x)")})
    trained |= trains(subject, text);
  if (!trained) throw Skip("its device has too few kernels for any model");
}

// A model with the ops that kernels usually join.
constexpr const char* block = R"(local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
orrery.seed(1)
local m = {
  table = nn.embedding(11, 16), norm = nn.layernorm(16), rms = nn.rmsnorm(16), last = nn.rmsnorm(16),
  qkv = nn.linear(16, 48), out = nn.linear(16, 16), up = nn.linear(16, 32), down = nn.linear(32, 16),
  plain = nn.linear(16, 16, { bias = false }), head = nn.linear(16, 11, { bias = false }),
  places = nn.batchnorm(6),
}
local run = orrery.compile(function(b)
  local x = m.table(b.x)
  local q, k, v = m.qkv(m.norm(x)):split(-1, 3)
  x = x + m.out(nn.attention(q, k, v, { heads = 2, causal = true }))
  x = x + m.down(nn.gelu(m.up(m.rms(x))))
  x = x + m.plain(m.last(x)):tanh()
  x = x + m.places(x):relu()
  return nn.cross_entropy(m.head(m.last(x)), b.y)
end, { params = m, optimizer = optim.adamw { lr = 0.01 }, microbatches = 4, clip = 1 })
for step = 1, 5 do
  local x, y = {}, {}
  for i = 1, 8 do
    x[i], y[i] = {}, {}
    for j = 1, 6 do x[i][j], y[i][j] = (i * j + step) % 11, (i + j * step) % 11 end
  end
  local mean = run:step { x = orrery.tensor(x, "i32"), y = orrery.tensor(y, "i32") }:mean()
  if orrery.world.rank == 0 then print(("bits loss %.9g"):format(mean)) end
end
)";

// Groups that the plugin claims are trained beside the ops that they stand for.
void groups(const Subject& subject) {
  require_device(subject);
  if (!kernel_of(subject).claim) throw Skip("it claims no groups");
  const std::string own = subject.name();
  if (own == "reference") throw Skip("others' groups are compared with its ops");
  const bool on_host = std::string_view(kernel_of(subject).device) == "host";
  const auto by = [&](const std::string& kernels) {
    // A device may compile as many kernels as there are expressions.
    const ScriptRun run =
        run_text(subject, true, block, {"--kernels", kernels}, (on_host ? 1 : 3) * kSeconds);
    if (run.code == ORR_UNAVAILABLE && !on_host)
      throw Skip("its device has too few kernels for the model");
    if (run.code != 0)
      throw Fault("kernel.h: claim", "a model that trains with --kernels " + kernels,
                  fmt::format("{}: {}", describe_code(run.code), run.output));
    std::vector<double> losses;
    std::istringstream lines(run.bits());
    for (std::string line; std::getline(lines, line);)
      losses.push_back(std::stod(line.substr(line.rfind(' '))));
    return losses;
  };
  const std::vector<double> mine = by(on_host ? "reference," + own : own), theirs = by("reference");
  for (size_t i = 0; i < theirs.size(); ++i)
    if (mine.size() != theirs.size() || !(std::abs(mine[i] - theirs[i]) <= 1e-3 * theirs[i]))
      throw Fault("kernel.h: claim",
                  fmt::format("losses of the ops alone: {}", fmt::join(theirs, ", ")),
                  fmt::format("{}", fmt::join(mine, ", ")));
}

}  // namespace

std::vector<Test> kernel_training_tests() {
  return {{"kernel.training", 6 * kSeconds, training}, {"kernel.groups", 6 * kSeconds, groups}};
}

}  // namespace orrery::judge
