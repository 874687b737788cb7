// SPDX-License-Identifier: Apache-2.0
//
// What ranks and the server of their store say to each other. Under our launcher each rank inherits
// one end of a socket pair (so nobody else can connect) and a page that only the launcher writes;
// under another launcher rank 0 serves, and hands the page to each rank that joins; between hosts
// there is no page, and `ended` says what it would. A message is a Frame, the key's bytes, the
// value's bytes.
#pragma once

#include <atomic>
#include <cstdint>

namespace orrery::wire {

enum Kind : uint32_t {
  put = 1,      // rank: key, value
  get = 2,      // rank: key; answered by `value` once the key is there
  value = 3,    // server: value, with the id of the question
  report = 4,   // rank: value is the sentence that it ends with
  join = 5,     // rank: id is its rank, value its world's size in decimal; key see `challenge`
  welcome = 6,  // server: the page comes with it; between hosts the key is the server's proof
  refuse = 7,   // server: value says why the rank may not join
  leave = 8,    // rank: ends its connection in order
  challenge =
      9,  // server, between hosts: value is a nonce; join's key is the rank's own and its proof
  ended = 10,  // server, between hosts: rank `id` has ended
  ask = 11,    // rank: what does the rank that key names do? server: passes it on to that rank
  doing = 12,  // rank: its answer, with the id that the server has asked with
  blame = 13   // rank, then server to all: value is the code and the sentence that all end with
};

struct Frame {
  uint32_t kind;
  uint32_t id;
  uint32_t key_bytes;
  uint32_t value_bytes;
};

constexpr uint32_t max_message = 64 << 10;
constexpr int max_ranks = 1024;

// The page: ended[r] is 0 while rank r runs, then how many had ended when it did: the first one is
// why the others have.
struct Board {
  std::atomic<uint16_t> ended[max_ranks];
};
static_assert(std::atomic<uint16_t>::is_always_lock_free);

// Variables that carry the two descriptors and the job's name.
constexpr const char* store_variable = "ORRERY_STORE_FD";
constexpr const char* board_variable = "ORRERY_BOARD_FD";
constexpr const char* job_variable = "ORRERY_JOB";

}  // namespace orrery::wire
