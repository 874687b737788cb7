// SPDX-License-Identifier: Apache-2.0
//
// Large collectives in two layers: through shared memory inside each host, and between hosts only
// among those ranks that have the same place on theirs, so that every byte leaves a host once. For
// groups of equal hosts, one after another in rank order. Rank r = h * k + i is the i-th of host h.
//
// A tree keeps its order: what the ranks of a host add first are whole nodes of it.
#include <orrery/ops.h>
#include <algorithm>
#include <orrery/sdk/plugin.hpp>
#include <orrery/sdk/traffic.hpp>

#include "wide.h"

namespace local {
namespace {

constexpr int64_t least_bytes = 64 << 10;

struct Node {
  int64_t lo, hi;  // leaves
};

// The nodes of the tree that the leaves of ranks [first, last) make alone.
std::vector<Node> nodes_of(const orr_coll& c, int first, int last, int ranks) {
  std::vector<Node> nodes;
  for (int64_t at = c.leaf_first[first]; at < c.leaf_first[last];) {
    const int64_t lo = at;
    orr_tree_node(&at, c.leaf_first[last], c.leaf_first[ranks]);
    nodes.push_back({lo, at});
  }
  return nodes;
}

orr_buffer part_of(const orr_buffer& b, int64_t at, int64_t bytes) {
  return {b.memory, b.offset + static_cast<uint64_t>(at), static_cast<uint64_t>(bytes)};
}

}  // namespace

// The ranks of other hosts that have this rank's place, numbered by host.
class Wide::Counterparts : public orr::exchange::Messenger {
 public:
  Counterparts(Wide& wide) : wide_(wide) {}
  void exchange(const std::vector<orr::exchange::Message>& sends,
                const std::vector<orr::exchange::Message>& recvs) override {
    wide_.exchange(ranks(sends), ranks(recvs));
  }

 private:
  std::vector<orr::exchange::Message> ranks(std::vector<orr::exchange::Message> messages) const {
    for (orr::exchange::Message& m : messages)
      m.peer = m.peer * wide_.host_->size() + wide_.host_->rank();
    return messages;
  }
  Wide& wide_;
};

// Memory between the layers: for each node of this host, as many elements.
struct Wide::Scratch {
  std::vector<char> bytes;
  orr_memory memory{};
  explicit Scratch(int64_t n) : bytes(static_cast<size_t>(n)) {
    memory.size = sizeof memory;
    memory.bytes = bytes.size();
    memory.host = bytes.data();
  }
  orr_buffer part(int64_t at, int64_t n) const {
    return {&memory, static_cast<uint64_t>(at), static_cast<uint64_t>(n)};
  }
};

// Whether the ranks of each host stand together, as many as on every other.
bool Wide::has_equal_hosts() const {
  const int k = host_->size();
  if (k < 2 || size_ % k != 0) return false;
  for (int r = 0; r < size_; ++r)
    if (family_->host_of[world_of_[r]] != family_->host_of[world_of_[r / k * k]]) return false;
  for (int h = k; h < size_; h += k)
    if (family_->host_of[world_of_[h]] == family_->host_of[world_of_[h - k]]) return false;
  return true;
}

bool Wide::goes_in_layers(const orr_coll& c) const {
  const int64_t n = c.op == ORR_COLL_ALL_GATHER ? orr::traffic::sum(c.counts, size_) : c.count;
  return layered_ && n * orr_dtype_bytes(c.dtype) >= least_bytes &&
         (orr::traffic::is_tree(c.op) || c.op == ORR_COLL_ALL_GATHER);
}

void Wide::in_layers(const orr_coll& c) {
  exchange({}, {});
  if (c.op == ORR_COLL_ALL_GATHER) return all_gather(c);
  c.op == ORR_COLL_TREE_ALL_REDUCE ? tree_all_reduce(c) : tree_reduce_scatter(c);
}

// Adds this host's nodes, as far as this rank is to have them: element by element of the slices
// [at[i], at[i] + n[i]) for the i-th rank of the host. The j-th node goes to `to` of j.
template <class F>
void Wide::add_here(const orr_coll& c, const int64_t* n, const int64_t* at, F&& to) {
  const int k = host_->size(), first = rank_ - host_->rank();
  const int64_t unit = orr_dtype_bytes(c.dtype), own = n[host_->rank()];
  int64_t sent = 0;  // nodes of this rank
  int j = 0;
  for (const Node& node : nodes_of(c, first, first + k, size_)) {
    std::vector<int64_t> leaf_first(k + 1);
    for (int i = 0; i <= k; ++i)
      leaf_first[i] = std::clamp(c.leaf_first[first + i], node.lo, node.hi) - node.lo;
    orr_coll sum = c;
    sum.op = ORR_COLL_TREE_REDUCE_SCATTER;
    sum.counts = n;
    sum.recv_counts = at;
    sum.leaf_first = leaf_first.data();
    const int64_t owned = orr::traffic::nodes(sum, host_->rank(), k);
    sum.send = part_of(c.send, sent * c.count * unit, owned * c.count * unit);
    sum.recv = to(j++, own * unit);
    sent += owned;
    host_->run(&sum, 1);
  }
}

// Each rank gets a share of the sum, and all gather these.
void Wide::tree_all_reduce(const orr_coll& c) {
  std::vector<int64_t> n(size_), at(size_);
  for (int r = 0; r < size_; ++r) {
    at[r] = orr::traffic::share_begin(c.count, r, size_);
    n[r] = orr::traffic::share_begin(c.count, r + 1, size_) - at[r];
  }
  const int64_t unit = orr_dtype_bytes(c.dtype);
  orr_coll sum = c;
  sum.counts = n.data();
  sum.recv_counts = at.data();
  sum.recv = part_of(c.recv, at[rank_] * unit, n[rank_] * unit);
  tree_reduce_scatter(sum);
  orr_coll share = sum;
  share.op = ORR_COLL_ALL_GATHER;
  share.send = sum.recv;
  share.recv = c.recv;
  all_gather(share);
}

// This rank adds, of its host's nodes, the slices of all its counterparts.
void Wide::tree_reduce_scatter(const orr_coll& c) {
  const int k = host_->size(), hosts = size_ / k, first = rank_ - host_->rank();
  const int64_t unit = orr_dtype_bytes(c.dtype);
  std::vector<int64_t> n(hosts), at(hosts), leaf_first(hosts + 1);
  int64_t row = 0;  // elements of a node in scratch: the slices one after another
  for (int h = 0; h < hosts; ++h) {
    n[h] = c.counts[h * k + host_->rank()];
    at[h] = row;
    row += n[h];
    leaf_first[h] = c.leaf_first[h * k];
  }
  leaf_first[hosts] = c.leaf_first[size_];
  const Scratch scratch(row * unit *
                        static_cast<int64_t>(nodes_of(c, first, first + k, size_).size()));
  for (int h = 0; h < hosts; ++h)
    add_here(c, c.counts + h * k, c.recv_counts + h * k,
             [&](int j, int64_t bytes) { return scratch.part((j * row + at[h]) * unit, bytes); });
  orr_coll sum = c;
  sum.op = ORR_COLL_TREE_REDUCE_SCATTER;
  sum.count = row;
  sum.counts = n.data();
  sum.recv_counts = at.data();
  sum.leaf_first = leaf_first.data();
  sum.send = scratch.part(0, static_cast<int64_t>(scratch.bytes.size()));
  Counterparts others(*this);
  orr::exchange::reduce(sum, rank_ / k, hosts, others);
}

// First each rank gets what its counterparts have, in its place in recv; then each host's pieces go
// around.
void Wide::all_gather(const orr_coll& c) {
  const int k = host_->size(), hosts = size_ / k;
  const int64_t unit = orr_dtype_bytes(c.dtype);
  const auto place = [&](int r) {
    return part_of(c.recv, orr::traffic::sum(c.counts, r) * unit, c.counts[r] * unit);
  };
  std::vector<orr::exchange::Message> sends, recvs;
  for (int h = 0; h < hosts; ++h) {
    const int r = h * k + host_->rank();
    if (r == rank_) continue;
    if (c.counts[rank_] > 0) sends.push_back({r, orr::data<char>(c.send), c.counts[rank_] * unit});
    if (c.counts[r] > 0) recvs.push_back({r, orr::data<char>(place(r)), c.counts[r] * unit});
  }
  exchange(sends, recvs);
  for (int h = 0; h < hosts; ++h) {
    const int r = h * k + host_->rank();
    orr_coll share = c;
    share.counts = c.counts + h * k;
    share.send = r == rank_ ? c.send : place(r);
    share.recv = part_of(c.recv, orr::traffic::sum(c.counts, h * k) * unit,
                         orr::traffic::sum(share.counts, k) * unit);
    host_->run(&share, 1);
  }
}

}  // namespace local
