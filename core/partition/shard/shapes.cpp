// SPDX-License-Identifier: Apache-2.0
//
// Which ranks get programs of equal shapes when training state is sharded (partition/passes.h), so
// that a plan for thousands of ranks lowers few of them.
#include <fmt/format.h>

#include <map>

#include "partition/passes.h"
#include "partition/shard/sharded_params.h"
#include "partition/shard/units.h"
#include "program/op.h"

namespace orrery {
namespace {

size_t at(int32_t i) { return static_cast<size_t>(i); }

// A number for each sharded parameter. Two have the same number if the same ops compute their
// tensors, and both or neither are cut inside.
std::map<const ShardedParam*, size_t> number_params(const Program& p, const ShardedParams& params) {
  std::map<const ShardedParam*, std::string> texts;
  for (const Op& op : p.ops()) {
    const ShardedParam* param = op.phase == Phase::update ? params.of(op) : nullptr;
    if (!param) continue;
    std::string& text = texts[param];
    text += op.kind + " " + to_string(op.expr);
    for (ValueId v : op.in) text += p.type(v).dims.empty() ? " scalar" : " tensor";
    for (ValueId v : op.out) text += std::string(" ") + dtype_name(p.type(v).dtype);
  }
  std::map<std::string, size_t> known;
  std::map<const ShardedParam*, size_t> numbers;
  for (auto& [param, text] : texts)
    numbers[param] =
        known.try_emplace(text + (cut_inside(*param->cuts) ? " cut" : ""), known.size())
            .first->second;
  return numbers;
}

int64_t size_of(const Dims& cuts, int piece) { return cuts[at(piece + 1)] - cuts[at(piece)]; }

}  // namespace

std::vector<ShardShape> shard_shapes(const Program& p, const Mesh& mesh) {
  const std::vector<Unit> units = find_units(p, mesh);
  const ShardedParams params(p, units, mesh.gradient_axis());
  const std::map<const ShardedParam*, size_t> numbers = number_params(p, params);
  std::vector<ShardShape> shapes(at(mesh.gradient_ranks()));
  for (const Unit& unit : units) {
    const int per = pieces_per_shard(mesh, unit.how);
    for (size_t r = 0; r < shapes.size(); ++r) {
      const int piece = unit.piece_of[r], shard = piece / per;
      for (size_t m = 0; m < unit.params.size(); ++m) {
        const int64_t held = size_of(unit.shards[m], shard), own = size_of(unit.pieces[m], piece);
        if (held == 0) continue;
        const auto param = numbers.find(params.of(unit.params[m]));
        shapes[r].elements += own + held;
        shapes[r].text +=
            fmt::format("{}:{}/{}", param == numbers.end() ? -1 : int(param->second), own, held);
        if (held == unit.shards[m].back()) shapes[r].text += to_string(p.type(unit.params[m]).dims);
        shapes[r].text += " ";
      }
      shapes[r].text += "; ";
    }
  }
  return shapes;
}

}  // namespace orrery
