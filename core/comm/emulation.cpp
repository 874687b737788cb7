// SPDX-License-Identifier: Apache-2.0
#include "comm/emulation.h"

#include <deque>
#include <functional>
#include <orrery/sdk/descriptor.hpp>
#include <orrery/sdk/exchange.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "comm/host_buffer.h"

namespace orrery {
namespace {

// The tag of all messages of an operation. It differs for different operations, is small enough for
// MPI, and is not one of the small tags that scripts usually use.
int32_t tag_of(const orr_coll& c) {
  const size_t facts[] = {std::hash<std::string_view>{}(c.name ? c.name : ""),
                          static_cast<size_t>(c.op),
                          static_cast<size_t>(c.dtype),
                          static_cast<size_t>(c.redop),
                          static_cast<size_t>(c.count),
                          static_cast<size_t>(c.sequence)};
  size_t h = 0;
  for (size_t fact : facts) h = (h ^ fact) * 0x100000001b3;
  return static_cast<int32_t>(0x4000 | (h >> 20 & 0x3fff));
}

// Whether the core knows the operation; others are left to the plugin.
bool is_known(int32_t op) { return op >= ORR_COLL_BARRIER && op <= ORR_COLL_TREE_REDUCE_SCATTER; }

// Whether the buffer is in memory of a device, which only the plugin can work on. Host memory
// without an address is an empty part. Only some ranks may have such a part, and all must decide
// alike, so it does not count.
bool is_away(const orr_buffer& b) { return orr::lies_on_device(b) && !b.memory->host; }

class Messages : public orr::exchange::Messenger {
 public:
  Messages(const orr_coll& c, const PostMessages& post) : of_(c), post_(post) {}

  void exchange(const std::vector<orr::exchange::Message>& sends,
                const std::vector<orr::exchange::Message>& recvs) override {
    std::deque<HostBuffer> buffers;
    std::vector<orr_coll> group;
    const auto add = [&](int32_t op, const orr::exchange::Message& m) {
      buffers.emplace_back(m.data, static_cast<size_t>(m.bytes));
      group.push_back(of_.one(op, m.peer, buffers.back().all()));
    };
    for (auto& m : sends) add(ORR_COLL_SEND, m);
    for (auto& m : recvs) add(ORR_COLL_RECV, m);
    if (!group.empty()) post_(group.data(), static_cast<int32_t>(group.size()));
  }

 private:
  const MessagesOf of_;
  const PostMessages& post_;
};

// A barrier: each rank sends a byte to each other rank.
void barrier(int rank, int ranks, Messages& messages) {
  std::vector<char> token(static_cast<size_t>(ranks));
  std::vector<orr::exchange::Message> sends, recvs;
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) continue;
    sends.push_back({r, &token[static_cast<size_t>(rank)], 1});
    recvs.push_back({r, &token[static_cast<size_t>(r)], 1});
  }
  messages.exchange(sends, recvs);
}

}  // namespace

MessagesOf::MessagesOf(const orr_coll& c)
    : name_(fmt::format("{}{}{}", orr::traffic::name(c.op), c.name && *c.name ? " " : "",
                        c.name ? c.name : "")) {
  common_.size = sizeof common_, common_.dtype = ORR_U8, common_.tag = tag_of(c);
  common_.where = c.where, common_.stream = c.stream, common_.deadline_ns = c.deadline_ns;
}

orr_coll MessagesOf::one(int32_t op, int peer, const orr_buffer& bytes) const {
  orr_coll m = common_;
  m.op = op, m.name = name_.c_str(), m.root_or_peer = peer;
  (op == ORR_COLL_SEND ? m.send : m.recv) = bytes, m.count = static_cast<int64_t>(bytes.bytes);
  return m;
}

bool is_native(const orr_comm_caps& caps, const orr_coll& c) {
  if (!is_known(c.op) || orr::is_paired(c.op) || is_away(c.send) || is_away(c.recv)) return true;
  return (caps.ops >> c.op & 1) && (!orr::adds(c.op) || (caps.dtypes >> c.dtype & 1));
}

void emulate(const orr_coll& c, int rank, int ranks, const PostMessages& post) {
  if (const std::string why = orr::refusal(c, rank, ranks, false); !why.empty())
    throw Error(ORR_INVALID, why);
  Messages messages(c, post);
  if (c.op == ORR_COLL_BARRIER) return barrier(rank, ranks, messages);
  if (orr::adds(c.op)) return orr::exchange::reduce(c, rank, ranks, messages);
  orr::exchange::move(c, rank, ranks, messages);
}

}  // namespace orrery
