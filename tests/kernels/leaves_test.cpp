// SPDX-License-Identifier: Apache-2.0
//
// Sums over the batch: one call over n leaves is the binary tree of n calls over one, and the nodes
// of any number of ranks combine to the same root.
#include <cmath>
#include <map>

#include "compare.h"

namespace kernel_suite {
namespace {

bool has_leaves(const Case& c) { return !c.leaf_in.empty(); }

using Nodes = std::map<std::pair<int64_t, int64_t>, Values>;  // (first leaf, leaves) -> one output

class Leaves : public ::testing::TestWithParam<Param> {
 protected:
  const std::string& plugin_ = GetParam().plugin;
  const Case& one_ = GetParam().c;

  Case whole(int64_t total) const {
    Case c = one_;
    for (size_t i = 0; i < c.in.size(); ++i) {
      std::vector<int64_t> dims(c.in[i].dims, c.in[i].dims + c.in[i].rank);
      dims[size_t(c.leaf_in[i])] *= total;
      c.in[i] = tensor(c.in[i].dtype, dims);
    }
    return c;
  }

  // Runs the leaves [lo, lo + n) of `total`; adds the nodes of output o to nodes[o].
  void run_leaves(const std::vector<Values>& inputs, int64_t lo, int64_t n, int64_t total,
                  std::vector<Nodes>& nodes) const {
    Case all = whole(total), c = whole(n);
    std::vector<Values> some;
    for (size_t i = 0; i < inputs.size(); ++i) {
      int64_t length = one_.in[i].dims[one_.leaf_in[i]];
      some.push_back(part(all.in[i], inputs[i], one_.leaf_in[i], lo * length, n * length));
    }
    c.attrs.push_back(integer("leaf_lo", lo));
    c.attrs.push_back(integer("leaf_n", n));
    c.attrs.push_back(integer("leaf_total", total));
    for (orr_tensor& t : c.out) {
      std::vector<int64_t> dims(t.dims, t.dims + t.rank);
      dims.insert(dims.begin(), orr_tree_nodes(lo, lo + n, total));
      t = tensor(t.dtype, dims);
    }
    RunResult r = run(plugin_, c, some);
    ASSERT_EQ(r.unsupported, "") << "leaves " << lo << " .. " << lo + n << " of " << total;
    ASSERT_TRUE(clean(r));
    nodes.resize(c.out.size());
    for (size_t o = 0; o < c.out.size(); ++o) split(r.values[o], lo, n, total, nodes[o]);
  }

  static void split(const Values& stored, int64_t lo, int64_t n, int64_t total, Nodes& nodes) {
    int64_t at = lo, count = orr_tree_nodes(lo, lo + n, total);
    size_t size = stored.size() / size_t(count), begin = 0;
    for (int64_t first = lo; int64_t leaves = orr_tree_node(&at, lo + n, total);
         first = at, begin += size)
      nodes[{first, leaves}] =
          Values(stored.begin() + long(begin), stored.begin() + long(begin + size));
  }

  // The node over [first, first + n) of a tree, from `nodes` or from its children.
  static Values node(int32_t dtype, const Nodes& nodes, int64_t first, int64_t n) {
    auto found = nodes.find({first, n});
    if (found != nodes.end()) return found->second;
    if (n <= 1) {
      ADD_FAILURE() << "leaf " << first << " is in no node";
      return {};
    }
    int64_t left = 1;
    while (left * 2 < n) left *= 2;
    Values a = node(dtype, nodes, first, left), b = node(dtype, nodes, first + left, n - left);
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) a[i] = sum(dtype, a[i], b[i]);
    return a;
  }

  static double sum(int32_t dtype, double a, double b) {
    if (dtype == ORR_F32) return double(float(a) + float(b));
    return rounded(dtype, is_real(dtype) && dtype != ORR_F64 ? double(float(a) + float(b)) : a + b);
  }
};

TEST_P(Leaves, OfOneCallAreTheTreeOfSingleCalls) {
  for (int64_t total : {1, 2, 3, 4, 5, 7, 8, 12, 13}) {
    std::vector<Values> inputs = make_inputs(whole(total), false, 4);
    std::vector<Nodes> together, single;
    ASSERT_NO_FATAL_FAILURE(run_leaves(inputs, 0, total, total, together));
    for (int64_t i = 0; i < total; ++i)
      ASSERT_NO_FATAL_FAILURE(run_leaves(inputs, i, 1, total, single));
    for (size_t o = 0; o < together.size(); ++o) {
      EXPECT_EQ(together[o].size(), 1u);
      EXPECT_EQ(node(one_.out[o].dtype, together[o], 0, total),
                node(one_.out[o].dtype, single[o], 0, total))
          << "output " << o << ", " << total << " leaves";
    }
  }
}

TEST_P(Leaves, OfAnyRanksCombineToOneRoot) {
  for (int64_t total : {6, 12, 13}) {
    std::vector<Values> inputs = make_inputs(whole(total), false, 5);
    std::vector<Nodes> root;
    ASSERT_NO_FATAL_FAILURE(run_leaves(inputs, 0, total, total, root));
    for (int64_t ranks = 2; ranks <= 6; ++ranks) {
      std::vector<Nodes> nodes;
      for (int64_t r = 0; r < ranks; ++r) {
        int64_t lo = total * r / ranks, hi = total * (r + 1) / ranks;
        ASSERT_NO_FATAL_FAILURE(run_leaves(inputs, lo, hi - lo, total, nodes));
      }
      for (size_t o = 0; o < root.size(); ++o)
        EXPECT_EQ(node(one_.out[o].dtype, nodes[o], 0, total),
                  node(one_.out[o].dtype, root[o], 0, total))
            << "output " << o << ", " << total << " leaves on " << ranks << " ranks";
    }
  }
}

// A plugin that has the op, but not its leaves, is at fault; one that lacks the op is not.
std::vector<Param> supported() {
  std::vector<Param> all = params(host_plugins(), has_leaves);
  std::erase_if(all, [](const Param& p) {
    return !run(p.plugin, p.c, make_inputs(p.c, false, 4)).unsupported.empty();
  });
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Leaves, ::testing::ValuesIn(supported()), param_name);

}  // namespace
}  // namespace kernel_suite
