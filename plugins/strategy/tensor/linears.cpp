// SPDX-License-Identifier: Apache-2.0
#include "linears.h"

#include <algorithm>

#include <orrery/sdk/path.hpp>

namespace tensor {

Finder::Finder(orr_program* program, const orr_edit* edit) : program_(program), edit_(edit) {
  orr::check(edit->each(program, ~0u, this, [](void* self, int32_t v, const orr_value_info* info) {
    static_cast<Finder*>(self)->know(v, *info);
    return static_cast<orr_status*>(nullptr);
  }));
  source_.resize(known_.size());
  for (int32_t v = 0; v < static_cast<int32_t>(known_.size()); ++v) source(v);
}

std::set<int32_t> Finder::tables(int64_t rows) const {
  std::set<int32_t> found;
  for (int32_t table : gathered_)
    if (known(table).dims.at(0) == rows) found.insert(table);
  return found;
}

void Finder::know(int32_t v, const orr_value_info& info) {
  known_.resize(std::max(known_.size(), at(v) + 1));
  known_[at(v)] = {info.role,
                   info.phase,
                   info.kind,
                   info.name,
                   orr::path::inside(info.region),
                   {info.type.dims, info.type.dims + info.type.rank}};
}

std::vector<int32_t> Finder::inputs(int32_t v) const {
  std::vector<int32_t> in(at(edit_->inputs(program_, v, nullptr, 0)));
  edit_->inputs(program_, v, in.data(), static_cast<int32_t>(in.size()));
  return in;
}

std::vector<int32_t> Finder::rule(int32_t v, int32_t input) const {
  std::vector<int32_t> factors(at(edit_->rule(program_, v, input, nullptr, 0)));
  edit_->rule(program_, v, input, factors.data(), static_cast<int32_t>(factors.size()));
  return factors;
}

// Returns the parameter if v is a cast of one, else v.
int32_t Finder::bare(int32_t v) const {
  if (known(v).kind != "pointwise") return v;
  const std::vector<int32_t> in = inputs(v);
  bool cast =
      in.size() == 1 && known(in[0]).role == ORR_ROLE_PARAM && known(in[0]).dims == known(v).dims;
  return cast ? in[0] : v;
}

// Recursive: the numbers of values are not an order of computation, because casts that were added
// later have higher numbers than the ops that read them.
const Source& Finder::source(int32_t v) {
  if (!source_[at(v)]) {
    Source found = trace(v);
    source_[at(v)] = std::move(found);
  }
  return *source_[at(v)];
}

Source Finder::trace(int32_t v) {
  const Known& k = known(v);
  if (k.kind.empty())
    return {k.role == ORR_ROLE_BATCH || k.role == ORR_ROLE_INPUT ? Source::closed : Source::fixed,
            {}};
  if (k.phase != ORR_PHASE_FORWARD) return {Source::closed, {}};
  const std::vector<int32_t> in = inputs(v);
  if (k.kind == "matmul" || k.kind == "gather_matmul") return product(v, in);
  if (k.kind == "gather" && known(bare(in[0])).role == ORR_ROLE_PARAM)
    gathered_.insert(bare(in[0]));
  if (k.kind == "cross_entropy" && source(in[0]).kind == Source::open)
    heads_ = source(in[0]).linears;
  static const std::set<std::string> by_width = {"pointwise", "split",     "concat", "reshape",
                                                 "transpose", "attention", "iota"};
  if (!by_width.count(k.kind)) return {Source::closed, {}};
  Source sum;
  // A bias of attention says nothing of its width, which is that of queries, keys and values.
  const size_t by = k.kind == "attention" ? 3 : in.size();
  for (size_t i = 0; i < by; ++i) {
    const Source& s = source(in[i]);
    sum.kind = std::max(sum.kind, s.kind);
    sum.linears.insert(s.linears.begin(), s.linears.end());
  }
  if (sum.kind == Source::open && k.kind == "pointwise") note_biases(in, sum);
  if (sum.kind == Source::closed) sum.linears.clear();
  return sum;
}

void Finder::note_biases(const std::vector<int32_t>& in, const Source& sum) {
  for (int32_t each : in) {
    const int32_t x = bare(each);
    const Known& k = known(x);
    if (k.role != ORR_ROLE_PARAM || k.dims.size() != 1) continue;
    for (size_t l : sum.linears)
      if (known(linears_[l].weight).dims[at(linears_[l].outputs)] == k.dims[0])
        linears_[l].biases.insert(x);
  }
}

Source Finder::product(int32_t v, const std::vector<int32_t>& in) {
  const int32_t weight = bare(in[1]);
  const Known& w = known(weight);
  const size_t n = w.dims.size();
  if (w.role != ORR_ROLE_PARAM || (n != 2 && n != 3)) return {Source::closed, {}};
  const std::vector<int32_t> factors = rule(v, 1), out = rule(v, -1);
  const int first = static_cast<int>(n) - 2, second = first + 1;  // before them a dim of experts
  const bool turned = std::count(out.begin(), out.end(), factors[at(first)]) > 0;
  const Source x = source(in[0]);
  // All matrices of experts are read in one module: what they are tells them apart.
  linears_.push_back({weight,
                      turned ? first : second,
                      turned ? second : first,
                      n == 3 ? w.name : known(v).path,
                      {}});
  const size_t me = linears_.size() - 1;
  if (x.kind != Source::open) return {Source::open, {me}};
  columns_.insert(x.linears.begin(), x.linears.end());
  rows_.insert(me);
  return {Source::closed, {}};
}

}  // namespace tensor
