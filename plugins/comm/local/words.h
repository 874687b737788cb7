// SPDX-License-Identifier: Apache-2.0
//
// A number of every rank for all of them: what the backend itself has to agree on.
#pragma once

#include <orrery/comm.h>

#include <vector>

namespace local {

// carry(c) runs the all_gather c, called `name` in messages.
template <class Carry>
std::vector<int64_t> gather_words(int ranks, int64_t mine, const char* name, Carry&& carry) {
  std::vector<int64_t> all(ranks), ones(ranks, 1);
  orr_memory in{}, out{};
  in.host = &mine;
  out.host = all.data();
  orr_coll c{};
  c.op = ORR_COLL_ALL_GATHER;
  c.dtype = ORR_I64;
  c.send = {&in, 0, 8};
  c.recv = {&out, 0, 8 * static_cast<uint64_t>(ranks)};
  c.counts = ones.data();
  c.name = name;
  carry(c);
  return all;
}

}  // namespace local
