// SPDX-License-Identifier: Apache-2.0
#include "conformance/kernel/leaves.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <stdexcept>

#include "conformance/kernel/compare.h"
#include "program/op.h"

namespace kernel_suite {
namespace {

// What a call did wrong.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A refusal that leaves another kernel to be taken: of what ops.h did not always have.
struct Refused {};

bool may_refuse(const Case& c) {
  const orrery::OpDef& def = orrery::op_def(c.kind);
  return def.must_take && def.must_take(AbiOp(c).op) != 0;
}

using Nodes = std::map<std::pair<int64_t, int64_t>, Values>;  // (first leaf, leaves) -> one output

double sum(int32_t dtype, double a, double b) {
  if (dtype == ORR_F32) return double(float(a) + float(b));
  return rounded(dtype, is_real(dtype) && dtype != ORR_F64 ? double(float(a) + float(b)) : a + b);
}

// The node over [first, first + n) of a tree, from `nodes` or from its children.
Values node(int32_t dtype, const Nodes& nodes, int64_t first, int64_t n) {
  auto found = nodes.find({first, n});
  if (found != nodes.end()) return found->second;
  if (n <= 1) throw Wrong(fmt::format("leaf {} is in no node", first));
  int64_t left = 1;
  while (left * 2 < n) left *= 2;
  Values a = node(dtype, nodes, first, left), b = node(dtype, nodes, first + left, n - left);
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) a[i] = sum(dtype, a[i], b[i]);
  return a;
}

class Batch {
 public:
  Batch(const std::string& plugin, const Case& one, int64_t total, uint32_t seed)
      : plugin_(plugin),
        one_(one),
        total_(total),
        whole_(of_leaves(total)),
        inputs_(make_inputs(whole_, false, seed)) {}

  // Runs the leaves [lo, lo + n) in one call; adds the nodes of output o to nodes[o].
  void run_leaves(int64_t lo, int64_t n, std::vector<Nodes>& nodes) const {
    const Case c = call(lo, n);
    std::vector<Values> some;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const int dim = one_.leaf_in[i];
      const int64_t length = one_.in[i].dims[dim];
      some.push_back(part(whole_.in[i], inputs_[i], dim, lo * length, n * length));
    }
    const RunResult r = run(plugin_, c, some);
    if (!r.unsupported.empty() && may_refuse(c)) throw Refused();
    const std::string fault =
        r.unsupported.empty() ? trouble(r) : "it refuses them: " + r.unsupported;
    if (!fault.empty())
      throw Wrong(fmt::format("leaves {} .. {} of {}: {}", lo, lo + n, total_, fault));
    nodes.resize(c.out.size());
    for (size_t o = 0; o < c.out.size(); ++o) split(r.values[o], lo, n, nodes[o]);
  }

  // Of every output.
  std::vector<Values> root(const std::vector<Nodes>& nodes) const {
    std::vector<Values> all;
    for (size_t o = 0; o < nodes.size(); ++o)
      all.push_back(node(one_.out[o].dtype, nodes[o], 0, total_));
    return all;
  }

  std::string against_oracle(const std::vector<Values>& root,
                             const std::vector<Nodes>& leaves) const {
    Case deep = whole_;
    deep.depth *= double(total_);
    std::vector<Values> wanted = whole_.oracle(whole_, inputs_);
    for (size_t o = 0; o < root.size(); ++o)
      for (size_t i = 0; i < root[o].size(); ++i)
        if (std::fabs(root[o][i] - wanted[o][i]) <=
            rounding_of_nodes(one_.out[o].dtype, leaves[o], i))
          wanted[o][i] = root[o][i];
    return distance(deep, root, wanted);
  }

 private:
  // What leaves and nodes of 16 bits lose by being rounded, also where they cancel.
  double rounding_of_nodes(int32_t dtype, const Nodes& leaves, size_t i) const {
    if (orr_dtype_bytes(dtype) != 2) return 0;
    double size = 0;
    for (const auto& [where, values] : leaves) size += std::fabs(values[i]);
    const double levels = 1 + std::ceil(std::log2(double(total_)));
    return size * levels * std::ldexp(1.0, dtype == ORR_BF16 ? -9 : -12);
  }

  Case of_leaves(int64_t n) const {
    Case c = one_;
    for (size_t i = 0; i < c.in.size(); ++i) {
      std::vector<int64_t> dims(c.in[i].dims, c.in[i].dims + c.in[i].rank);
      dims[size_t(c.leaf_in[i])] *= n;
      c.in[i] = tensor(c.in[i].dtype, dims);
    }
    return c;
  }

  Case call(int64_t lo, int64_t n) const {
    Case c = of_leaves(n);
    c.attrs.push_back(integer("leaf_lo", lo));
    c.attrs.push_back(integer("leaf_n", n));
    c.attrs.push_back(integer("leaf_total", total_));
    for (orr_tensor& t : c.out) {
      std::vector<int64_t> dims(t.dims, t.dims + t.rank);
      dims.insert(dims.begin(), orr_tree_nodes(lo, lo + n, total_));
      t = tensor(t.dtype, dims);
    }
    return c;
  }

  void split(const Values& stored, int64_t lo, int64_t n, Nodes& nodes) const {
    int64_t at = lo, count = orr_tree_nodes(lo, lo + n, total_);
    const size_t size = stored.size() / size_t(count);
    auto begin = stored.begin();
    for (int64_t first = lo; int64_t leaves = orr_tree_node(&at, lo + n, total_);
         first = at, begin += long(size))
      nodes[{first, leaves}] = Values(begin, begin + long(size));
  }

  const std::string& plugin_;
  const Case& one_;
  int64_t total_;
  Case whole_;
  std::vector<Values> inputs_;
};

}  // namespace

std::string leaves_of_one_call(const std::string& plugin, const Case& one, int64_t total,
                               uint32_t seed) try {
  const Batch batch(plugin, one, total, seed);
  std::vector<Nodes> together, single;
  batch.run_leaves(0, total, together);
  for (int64_t i = 0; i < total; ++i) batch.run_leaves(i, 1, single);
  const std::vector<Values> root = batch.root(together);
  std::string fault = difference(root, batch.root(single));
  if (fault.empty()) fault = batch.against_oracle(root, single);
  return fault.empty() ? "" : fmt::format("{} leaves in one call: {}", total, fault);
} catch (const Wrong& e) {
  return e.what();
} catch (const Refused&) {
  return "";
}

std::string leaves_of_ranks(const std::string& plugin, const Case& one, int64_t total,
                            int64_t ranks, uint32_t seed) try {
  const Batch batch(plugin, one, total, seed);
  std::vector<Nodes> alone, dealt;
  batch.run_leaves(0, total, alone);
  for (int64_t r = 0; r < ranks; ++r) {
    const int64_t lo = total * r / ranks, hi = total * (r + 1) / ranks;
    batch.run_leaves(lo, hi - lo, dealt);
  }
  const std::string fault = difference(batch.root(dealt), batch.root(alone));
  return fault.empty() ? "" : fmt::format("{} leaves on {} ranks: {}", total, ranks, fault);
} catch (const Wrong& e) {
  return e.what();
} catch (const Refused&) {
  return "";
}

}  // namespace kernel_suite
