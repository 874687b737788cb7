// SPDX-License-Identifier: Apache-2.0
#include "partition/shard/units.h"

#include <orrery/ops.h>
#include <orrery/strategy.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "program/state.h"

namespace orrery {
namespace {

constexpr int64_t kBlock = ORR_SUM_BLOCK;

// The cuts that give every element to one owner.
std::vector<Dims> cut_for(const Dims& sizes, int pieces, int owner) {
  std::vector<Dims> cuts;
  for (int64_t n : sizes) {
    cuts.emplace_back(static_cast<size_t>(pieces) + 1, 0);
    std::fill(cuts.back().begin() + owner + 1, cuts.back().end(), n);
  }
  return cuts;
}

// Unit::piece_of.
std::vector<int> owned_by_coordinate(const Mesh& mesh, const Sharded& how) {
  const std::string sums = mesh.gradient_axis(), replicas = mesh.replicas_of(how.axis);
  std::vector<int> pieces;
  for (int c = 0; c < mesh.gradient_ranks(); ++c) {
    const int rank = mesh.peer(sums, c, 0);
    pieces.push_back(mesh.coordinate(how.axis, rank) * pieces_per_shard(mesh, how) +
                     mesh.coordinate(replicas, rank));
  }
  return pieces;
}

// Of how many elements the smallest number of whole rows is that is also a number of whole blocks.
int64_t grain_of_rows(const Type& type) {
  const int64_t row = type.dims[0] ? type.elements() / type.dims[0] : 0;
  return row ? std::lcm(row, kBlock) : kBlock;
}

bool has_elements(const Value& v) { return !(v.part.is_flat() && v.part.end == 0); }

}  // namespace

std::vector<Dims> cut_evenly(const Dims& sizes, int pieces, const Dims& grains) {
  std::vector<Dims> cuts(sizes.size(), Dims(static_cast<size_t>(pieces) + 1, 0));
  int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  for (int piece = 1; piece <= pieces; ++piece) {
    int64_t left = total / pieces * piece + total % pieces * piece / pieces;
    for (size_t i = 0; i < sizes.size(); ++i) {
      int64_t n = sizes[i], at = std::clamp<int64_t>(left, 0, n);
      const int64_t grain = grains.empty() ? kBlock : grains[i];
      if (at < n) at = std::min(n, (at + grain / 2) / grain * grain);
      cuts[i][static_cast<size_t>(piece)] = at;
      left -= n;
    }
  }
  return cuts;
}

std::vector<Unit> find_units(const Program& p, const Mesh& mesh) {
  std::vector<ValueId> params;
  std::map<const State*, ValueId> copies;
  for (size_t i = 0; i < p.values().size(); ++i) {
    const Value& v = p.values()[i];
    if (v.state && v.state->copy_of) copies[v.state->copy_of] = static_cast<ValueId>(i);
    if (v.state && mesh.sharded.count(v.name) && !v.type.dims.empty() && has_elements(v))
      params.push_back(static_cast<ValueId>(i));
  }
  std::sort(params.begin(), params.end(),
            [&](ValueId a, ValueId b) { return natural_less(p.value(a).name, p.value(b).name); });
  std::map<std::tuple<std::string, int, int32_t, int32_t>, Unit> found;  // axis, unit, dtypes
  for (ValueId v : params) {
    const Sharded& how = mesh.sharded.at(p.value(v).name);
    const auto copy = copies.find(p.value(v).state.get());
    const ValueId read = copy == copies.end() ? v : copy->second;
    Unit& unit = found[{how.axis, how.unit, p.type(v).dtype, p.type(read).dtype}];
    unit.how = how;
    unit.params.push_back(v), unit.read.push_back(read);
  }
  std::vector<Unit> units;
  for (auto& [key, unit] : found) {
    Dims sizes, grains;
    for (ValueId v : unit.params) {
      sizes.push_back(p.type(v).elements());
      grains.push_back(unit.how.rows ? grain_of_rows(p.type(v)) : kBlock);
    }
    unit.piece_of = owned_by_coordinate(mesh, unit.how);
    int pieces = mesh.gradient_ranks(), per = pieces_per_shard(mesh, unit.how);
    unit.pieces = unit.how.owner == kNone ? cut_evenly(sizes, pieces, grains)
                                          : cut_for(sizes, pieces, unit.how.owner * per);
    for (const Dims& cuts : unit.pieces) {
      unit.shards.emplace_back();
      for (size_t i = 0; i < cuts.size(); i += static_cast<size_t>(per))
        unit.shards.back().push_back(cuts[i]);
    }
    units.push_back(std::move(unit));
  }
  return units;
}

uint64_t most_bytes(const Program& p, const Unit& unit) {
  uint64_t most = 0;
  for (size_t s = 0; s + 1 < unit.shards[0].size(); ++s) {
    uint64_t bytes = 0;
    for (size_t m = 0; m < unit.read.size(); ++m) {
      const Dims& cuts = unit.shards[m];
      const int64_t n = unit.how.what >= ORR_SHARD_PARAM ? cuts[s + 1] - cuts[s] : cuts.back();
      bytes += static_cast<uint64_t>(n * orr_dtype_bytes(p.type(unit.read[m]).dtype));
    }
    most = std::max(most, bytes);
  }
  return most;
}

Range held_by(const Dims& cuts, int s) {
  const auto i = static_cast<size_t>(s);
  return {cuts[i], cuts[i + 1]};
}

bool cut_inside(const Dims& cuts) {
  return std::any_of(cuts.begin(), cuts.end(), [&](int64_t c) { return c > 0 && c < cuts.back(); });
}

Dims cut_alike(const Dims& like, int64_t n) {
  Dims cuts;
  for (int64_t c : like) cuts.push_back(c == like.back() ? n : 0);
  return cuts;
}

int pieces_per_shard(const Mesh& mesh, const Sharded& how) {
  return mesh.gradient_ranks() / mesh.size_of(how.axis);
}

}  // namespace orrery
