// SPDX-License-Identifier: Apache-2.0
//
// The template's backend with all_reduce as an operation of its own, which faults can spoil:
// composed of its messages, as Orrery composes what a backend does not claim.
#pragma once

#include "good_comm.cpp"

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <orrery/sdk/exchange.hpp>
#include <string>
#include <vector>

namespace {

using orr::exchange::Message;

class SumOfLetters : public orr::exchange::Messenger {
 public:
  SumOfLetters(orr_comm* comm, const orr_coll& sum)
      : comm_(comm),
        letter_(sum),
        name_(orr::traffic::name(sum.op) + std::string(" ") + (sum.name ? sum.name : "") + " of " +
              std::to_string(sum.count)) {
    const std::string kind = std::to_string(sum.dtype) + std::to_string(sum.redop);
    letter_.name = name_.c_str(), letter_.dtype = ORR_U8;
    letter_.tag = static_cast<int32_t>(std::hash<std::string>{}(name_ + kind) & 0xffff);
  }

  void exchange(const std::vector<Message>& sends, const std::vector<Message>& recvs) override {
    std::deque<orr_memory> places;
    std::vector<orr_coll> group;
    const auto add = [&](int32_t op, const Message& m) {
      const auto bytes = static_cast<uint64_t>(m.bytes);
      places.push_back(
          {sizeof(orr_memory), ORR_TIER_HOST, bytes, m.data, nullptr, "host", nullptr});
      letter_.op = op, letter_.root_or_peer = m.peer, letter_.count = m.bytes;
      letter_.send = letter_.recv = {&places.back(), 0, bytes};
      group.push_back(letter_);
    };
    for (const Message& m : sends) add(ORR_COLL_SEND, m);
    for (const Message& m : recvs) add(ORR_COLL_RECV, m);
    orr_work* done = nullptr;
    orr::check(table.post(comm_, group.data(), static_cast<int32_t>(group.size()), &done));
  }

 private:
  orr_comm* comm_;
  orr_coll letter_;
  std::string name_;
};

// By communicator: what its sums send by their own definition, beyond what their letters do.
std::mutex beyond_mutex;
std::map<orr_comm*, uint64_t> beyond;

orr_status* own_sum(orr_comm* comm, const orr_coll& c) {
  return orr::guard([&] {
    const int rank = table.rank(comm), ranks = table.world_size(comm);
    if (const std::string why = orr::refusal(c, rank, ranks, false); !why.empty())
      throw orr::Error(ORR_INVALID, why);
    const uint64_t before = table.bytes_sent(comm);
    SumOfLetters letters(comm, c);
    orr::exchange::reduce(c, rank, ranks, letters);
    const std::lock_guard lock(beyond_mutex);
    beyond[comm] += orr::traffic::bytes_sent(c, rank, ranks) - (table.bytes_sent(comm) - before);
  });
}

// As `table`'s, of a backend that has sums.
int32_t whole_probe(void* self, orr_comm_caps* out, char* reason, uint32_t bytes) {
  const int32_t score = table.probe(self, out, reason, bytes);
  out->ops |= uint64_t{1} << ORR_COLL_ALL_REDUCE;
  out->dtypes = orr::host_caps(0).dtypes;
  return score;
}

orr_status* whole_post(orr_comm* comm, const orr_coll* ops, int32_t n, orr_work** out) {
  if (n != 1 || ops->op != ORR_COLL_ALL_REDUCE) return table.post(comm, ops, n, out);
  *out = reinterpret_cast<orr_work*>(comm);
  return own_sum(comm, *ops);
}

uint64_t whole_bytes_sent(orr_comm* comm) {
  const std::lock_guard lock(beyond_mutex);
  const auto found = beyond.find(comm);
  return table.bytes_sent(comm) + (found == beyond.end() ? 0 : found->second);
}

void whole_destroy(orr_comm* comm) {
  table.destroy(comm);
  const std::lock_guard lock(beyond_mutex);
  beyond.erase(comm);
}

}  // namespace
