// SPDX-License-Identifier: Apache-2.0
//
// The messages between ranks and the server of their store, which is our launcher, or rank 0 under
// another launcher. A message is a Frame, the key's bytes, the value's bytes.
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
  get = 6,        // rank: key; answered by `value` once the key has a value, or by `lost`
  value = 7,      // server: value, with the id of the question
  lost = 8,       // server: the question `id` has no answer, because a rank has ended
  ended = 9,      // server: rank `id` has ended; value is its number in the order of ends
  ask = 10,       // rank: what is the rank in key doing? The server passes it on to that rank
  doing = 11,     // rank: the answer, with the id of the server's question
  blame = 12,     // rank, then server to all: value is the code and text of the error to end with
  report = 13,    // rank: value is the error that it ends with
  leave = 14      // rank: it closes its connection on purpose
};

struct Frame {
  uint32_t kind;
  uint32_t id;
  uint32_t key_bytes;
  uint32_t value_bytes;
};

constexpr uint32_t max_message = 64 << 10;
constexpr int max_ranks = 1024;

// Environment variables with the place at which our launcher serves its ranks, and the job's name.
constexpr const char* store_variable = "ORRERY_STORE";
constexpr const char* job_variable = "ORRERY_JOB";

// The value of `blame`.
inline std::string reason(const Error& why) { return fmt::format("{} {}", why.code(), why.what()); }

}  // namespace orrery::wire
