// SPDX-License-Identifier: Apache-2.0
//
// What ranks and the server of their store say to each other: our launcher, or under another one
// rank 0. A message is a Frame, the key's bytes, the value's bytes.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace orrery::wire {

enum Kind : uint32_t {
  challenge = 1,  // server: value is a nonce
  join = 2,       // rank: id is its rank, value its world's size in decimal; key: nonce and proof
  welcome = 3,    // server: key is its own proof
  refuse = 4,     // server: value says why the rank may not join
  put = 5,        // rank: key, value
  get = 6,        // rank: key; answered by `value` once the key is there, or by `lost`
  value = 7,      // server: value, with the id of the question
  lost = 8,       // server: the question `id` has no answer, for a rank has ended
  ended = 9,      // server: rank `id` has; value is how many had, then
  ask = 10,       // rank: what does the rank that key names do? server: passes it on to that rank
  doing = 11,     // rank: its answer, with the id that the server has asked with
  blame = 12,     // rank, then server to all: value is the code and the sentence that all end with
  report = 13,    // rank: value is the sentence that it ends with
  leave = 14      // rank: ends its connection in order
};

struct Frame {
  uint32_t kind;
  uint32_t id;
  uint32_t key_bytes;
  uint32_t value_bytes;
};

constexpr uint32_t max_message = 64 << 10;
constexpr int max_ranks = 1024;

// Variables that say where our launcher serves its ranks, and the job's name.
constexpr const char* store_variable = "ORRERY_STORE";
constexpr const char* job_variable = "ORRERY_JOB";

// The value of `blame`.
inline std::string reason(const Error& why) { return fmt::format("{} {}", why.code(), why.what()); }

}  // namespace orrery::wire
