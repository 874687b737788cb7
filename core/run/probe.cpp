// SPDX-License-Identifier: Apache-2.0
#include "run/probe.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace orrery {
namespace {

std::vector<std::string> wanted;
std::map<std::string, int> offered;  // how often, by name

bool is_wanted(const std::string& name) {
  return std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

}  // namespace

const std::vector<std::string>& probed() { return wanted; }

ProbeScope::ProbeScope(const std::vector<std::string>& names) : before_(wanted) {
  for (const std::string& name : names)
    if (!is_wanted(name)) wanted.push_back(name);
}
ProbeScope::~ProbeScope() { wanted = std::move(before_), offered.clear(); }

void forget_offers() { offered.clear(); }

ValueId offer(Program& p, ValueId x, const std::string& name) {
  if (wanted.empty()) return x;
  const int times = ++offered[name];
  const std::string full = times == 1 ? name : fmt::format("{}#{}", name, times);
  if (times > 1) ++offered[full];
  if (is_wanted(full)) p.output(full, x);
  const std::string gradient = kGradientOf + full;
  if (!is_wanted(gradient)) return x;
  return p.with_gradient(x, {x}, [&p, gradient](ValueId dy) {
    p.output(gradient, p.pointwise(ORR_FN_INPUT, {dy}));  // an op that is told where it belongs
    return std::vector<ValueId>{dy};
  });
}

void expect_probed(const Program& p, const std::string& line) {
  for (const std::string& name : wanted) {
    const auto is_it = [&](auto& output) { return output.first == name; };
    if (std::any_of(p.outputs().begin(), p.outputs().end(), is_it)) continue;
    const bool gradient = name.starts_with(kGradientOf);
    const std::string bare = gradient ? name.substr(std::string(kGradientOf).size()) : name;
    std::vector<std::string> known;
    for (auto& [each, times] : offered) known.push_back(each);
    if (offered.count(bare))
      fail(ORR_INVALID, "{}: probe: no gradient flows to '{}' in this step", line, bare);
    fail(ORR_INVALID,
         "{}: probe: this step computes nothing of the name '{}'{}; it has {}, and 'grad NAME' of "
         "these and of parameters that are trained",
         line, name, did_you_mean(bare, known), join(known, ", "));
  }
}

}  // namespace orrery
