// SPDX-License-Identifier: Apache-2.0
//
// What every backend does with a descriptor before it moves a byte: is it well-formed, do all ranks
// post the same one, and how is it called in a message.
#pragma once

#include <orrery/comm.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shared {

// Names for messages, cut to fit.
struct Label {
  char name[56];
  char where[104];
};
Label label_of(const orr_coll& c);

// Everything in which ranks must agree. Travels between processes: fixed-width fields only.
// `digest` covers what has no field of its own.
struct Card {
  int32_t op, dtype, redop, root;
  int64_t count;
  uint64_t sequence;
  uint64_t digest;
  Label label;
};
Card card_of(const orr_coll& c, int ranks);
bool agree(const Card& a, const Card& b);
// The same in a word: equal where the cards agree, and else but once in 2^64 not.
uint64_t fingerprint(const orr_coll& c, int ranks);
// "ranks post different operations: rank 0 all_reduce 'w' (train.lua:12) of 8 f32, operation 3;
// ..."
std::string disagreement(const Card& a, int rank_of_a, const Card& b, int rank_of_b);
// The first disagreement among all ranks' cards, by rank, as each of them says it; "" if there is
// none. `world_of`: the ranks' names.
std::string disagreement(const std::vector<Card>& cards, const std::vector<int>& world_of);

// Throws orr::Error, ORR_INVALID or ORR_UNIMPLEMENTED, if the descriptor cannot be run by this
// rank. `any_source`: a receive may name peer -1. `device`: buffers may lie in device memory.
void check(const orr_coll& c, int rank, int ranks, bool any_source, bool device = false);
// Whether a buffer of the operation lies in device memory.
bool on_device(const orr_coll& c);

inline bool paired(const orr_coll& c) { return c.op == ORR_COLL_SEND || c.op == ORR_COLL_RECV; }

// " in all_reduce 'bucket 3' (train.lua:12)"; null: while communicators form.
std::string in_operation(const orr_coll* c);
// What the two ends of a message say of it: "5 f32 'logits'".
std::string end_of_message(int64_t count, int32_t dtype, const Label& label);
std::string unequal_ends(int sender, const std::string& sent, int receiver,
                         const std::string& wanted);
std::string seconds(int64_t ns);
int64_t now_ns();
// Within it a rank that waits gets the CPU and answers, whatever the load. With the 0.4 s in which
// ranks then say where they stand it stays well below the 2 s after the deadline that all may take.
constexpr int64_t time_to_answer_ns = 800'000'000;
uint64_t hash(const void* data, size_t bytes, uint64_t seed);

}  // namespace shared
