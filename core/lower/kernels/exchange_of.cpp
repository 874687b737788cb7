// SPDX-License-Identifier: Apache-2.0
#include "lower/kernels/launcher.h"

#include <map>
#include <numeric>

namespace orrery {
namespace {

Exchange described(const Op& op) {
  static const std::map<std::string, int32_t> ops = {{"all_reduce", ORR_COLL_ALL_REDUCE},
                                                     {"all_gather", ORR_COLL_ALL_GATHER},
                                                     {"reduce_scatter", ORR_COLL_REDUCE_SCATTER},
                                                     {"broadcast", ORR_COLL_BROADCAST},
                                                     {"all_to_all", ORR_COLL_ALL_TO_ALL},
                                                     {"permute", ORR_COLL_ALL_TO_ALL},
                                                     {"send", ORR_COLL_SEND},
                                                     {"recv", ORR_COLL_RECV}};
  static const std::map<std::string, int32_t> redops = {
      {"sum", ORR_RED_SUM}, {"min", ORR_RED_MIN}, {"max", ORR_RED_MAX}};
  Exchange e;
  e.op = ops.at(op.kind), e.redop = redops.at(attr_text(op.attrs, "fn", "sum"));
  e.axis = attr_text(op.attrs, "axis", ""), e.origin = attr_text(op.attrs, "origin", "");
  e.where = op.site.line;
  e.name = op.site.region.empty() ? op.kind : op.site.region.str();
  const CommOp& how = op.exchange();
  const bool paired = op.kind == "send" || op.kind == "recv";
  e.root_or_peer = paired ? how.peer : static_cast<int32_t>(attr_int(op.attrs, "root", 0));
  e.tag = how.tag, e.chunk = how.chunk;
  e.segment = how.made_in == Phase::forward ? Segment::forward : Segment::backward;
  return e;
}

// Makes the sum a tree over the ranks: every rank's summand counts as one microbatch.
void make_tree(Exchange& e, int ranks) {
  const bool all = e.op == ORR_COLL_ALL_REDUCE;
  e.op = all ? ORR_COLL_TREE_ALL_REDUCE : ORR_COLL_TREE_REDUCE_SCATTER;
  for (int r = 0; r <= ranks; ++r) e.leaf_first.push_back(r);
  for (int r = 0; r < ranks && !all; ++r) e.begins.push_back(e.count / ranks * r);
}

// A permutation as an exchange: this rank sends its whole tensor to one rank and receives one.
void make_permutation(Exchange& e, const Dims& to, int me) {
  e.to = to;
  e.counts.assign(to.size(), 0), e.begins.assign(to.size(), 0);
  e.counts[static_cast<size_t>(to[static_cast<size_t>(me)])] = e.count;
  for (size_t c = 0; c < to.size(); ++c)
    if (to[c] == me) e.begins[c] = e.count;
}

}  // namespace

Exchange exchange_of(const Program& p, const Op& op, const Mesh& mesh, int rank) {
  Exchange e = described(op);
  const Type& type = p.type(op.in.empty() ? op.out[0] : op.in[0]);
  e.dtype = p.type(op.out.empty() ? op.in[0] : op.out[0]).dtype;
  e.count = type.elements();
  const int ranks = mesh.size_of(e.axis), me = mesh.coordinate(e.axis, rank);
  if (op.attrs.has("counts")) {
    e.counts = attr_ints(op.attrs, "counts");
    e.count =
        std::accumulate(e.counts.begin(), e.counts.end(), int64_t{0});  // the same on all ranks
  } else if (op.kind == "all_gather") {
    e.counts.assign(static_cast<size_t>(ranks), e.count);
  } else if (op.kind == "reduce_scatter") {
    e.counts.assign(static_cast<size_t>(ranks), e.count / ranks);
  }
  if (op.kind == "all_to_all") {
    e.counts.assign(static_cast<size_t>(ranks), e.count / ranks), e.begins = e.counts;
  } else if (op.kind == "permute") {
    make_permutation(e, attr_ints(op.attrs, "to"), me);
  }
  if (op.exchange().tree) make_tree(e, ranks);
  e.bytes_sent = e.sent_by(me, ranks);
  return e;
}

}  // namespace orrery
