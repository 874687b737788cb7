// SPDX-License-Identifier: Apache-2.0
#include "partition/cut_program.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/in_parallel.h"
#include "partition/cut/pass.h"
#include "partition/localize.h"

namespace orrery {
namespace {

// The placements of values that are asked for on one axis, by the ids of these values in the
// program that the axes before have made.
std::map<ValueId, PartsAsked> asked_here(const Program& logical, const std::vector<bool>& needed,
                                         const Placing& placing, const CutProgram& before) {
  std::map<ValueId, PartsAsked> asked;
  for (auto& [v, how] : placing.values) {
    const OpId maker = logical.value(v).producer;
    if (maker != kNone && !needed[static_cast<size_t>(maker)]) continue;
    const ValueId x = before.here[static_cast<size_t>(v)];
    if (x == kNone)
      fail(ORR_UNIMPLEMENTED,
           "{}: '{}' is summed in chunks over another axis than '{}' and cannot be cut over this "
           "one as well: leave the chunks out of one of them",
           how.by, before.program.value(v).name, placing.axis);
    asked.emplace(x, how);
  }
  return asked;
}

// Into how many parts the placings from `next` on cut the dim of the sequence that sums are
// scattered over on an axis before them.
int parts_of_scattered(const Program& logical, const Mesh& mesh, int dim, size_t next) {
  int parts = 1;
  for (size_t i = next; i < mesh.placed.size(); ++i) {
    const Placing& outer = mesh.placed[i];
    const bool cuts = std::any_of(outer.values.begin(), outer.values.end(), [&](auto& asked) {
      return asked.second.dim == dim && logical.value(asked.first).role == Role::batch;
    });
    if (cuts) parts *= std::max(mesh.size_of(outer.axis), outer.chunks);
  }
  return parts;
}

// Lets ops that have to know their final share be appended in their final form (PartsRule::settle).
void settle(Program& p) {
  std::vector<Op> ops;
  ops.swap(p.mutable_ops());
  std::vector<OpId> now(ops.size(), kNone);
  const Site site = p.site();
  const Phase phase = p.phase();
  for (size_t i = 0; i < ops.size(); ++i) {
    Op& op = ops[i];
    if (op.twin != kNone) op.twin = now[static_cast<size_t>(op.twin)];
    if (const PartsRule* rule = op_def(op.kind).parts; rule && rule->settle) {
      const size_t begin = p.ops().size();
      const int32_t stage = op.stage;
      p.set_site(op.site), p.set_phase(op.phase), p.set_twin(op.twin);
      rule->settle(p, std::move(op));
      for (size_t j = begin; j < p.ops().size(); ++j) p.mutable_ops()[j].stage = stage;
      p.set_twin(kNone);
    } else {
      p.append(std::move(op));
    }
    now[i] = static_cast<OpId>(p.ops().size()) - 1;
  }
  p.set_site(site), p.set_phase(phase);
}

}  // namespace

CutProgram cut_program(const Program& logical, const Mesh& mesh, int rank) {
  CutProgram done;
  done.here.resize(logical.values().size());
  std::iota(done.here.begin(), done.here.end(), 0);
  const Program* from = &logical;
  const std::vector<bool> needed = live_ops(logical);
  for (size_t i = 0; i < mesh.placed.size(); ++i) {
    const Placing& placing = mesh.placed[i];
    if (mesh.size_of(placing.axis) == 1 && placing.chunks <= 1) continue;
    auto asked = asked_here(logical, needed, placing, done);
    const int outer = parts_of_scattered(logical, mesh, placing.scatter, i + 1);
    CutProgram next = CutPass(*from, mesh, placing, std::move(asked), outer, rank).run();
    for (ValueId& v : done.here)
      if (v != kNone) v = next.here[static_cast<size_t>(v)];
    done.program = std::move(next.program), from = &done.program;
    done.segments.merge(next.segments);
    for (const std::string& remark : next.remarks)
      done.remarks.push_back(placing.origin + ": " + remark);
  }
  if (from == &logical) done.program = logical;
  settle(done.program);
  return done;
}

namespace {

std::vector<std::string> exchanges_of(const Program& p) {
  std::vector<std::string> found;
  for (const Op& op : p.ops())
    if (is_exchange(op.kind))
      found.push_back(fmt::format("{}{} over axis '{}'", op.site.prefix(), op.kind,
                                  attr_text(op.attrs, "axis", "")));
  return found;
}

}  // namespace

void check_exchanges(const Program& logical, const Mesh& mesh) {
  const std::string axis = mesh.placed_axis();
  const auto each =
      in_parallel<std::vector<std::string>>(static_cast<size_t>(mesh.size_of(axis)), [&](size_t c) {
        const int rank = mesh.peer(axis, static_cast<int>(c), 0);
        return exchanges_of(cut_program(logical, mesh, rank).program);
      });
  for (size_t c = 1; c < each.size(); ++c) {
    const auto [a, b] =
        std::mismatch(each[0].begin(), each[0].end(), each[c].begin(), each[c].end());
    if (a == each[0].end() && b == each[c].end()) continue;
    fail(ORR_UNIMPLEMENTED,
         "the ranks of axes '{}' would exchange other values: {} and {}; leave one of the axes out",
         axis, a == each[0].end() ? "nothing" : *a, b == each[c].end() ? "nothing" : *b);
  }
}

}  // namespace orrery
