// SPDX-License-Identifier: Apache-2.0
//
// States of which every rank holds a part begin, read and write as if they were whole.
#include "run/states.h"
#include "partition/localize.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "ranks.h"
#include "run/run.h"
#include "run/runtime.h"

namespace orrery {
namespace {

std::shared_ptr<State> make(const char* name, Initial::Kind kind, const Dims& dims = {7, 5}) {
  auto s = std::make_shared<State>();
  s->name = name, s->type = {ORR_F32, dims};
  s->initial.kind = kind, s->initial.a = 0.5, s->initial.b = 2;
  return s;
}

bool same(const HostTensor& a, const HostTensor& b) {
  return a.type == b.type && *a.bytes == *b.bytes;
}

HostTensor counting(const Type& type, float first) {
  HostTensor t = HostTensor::make(type);
  for (int64_t i = 0; i < type.elements(); ++i) t.data<float>()[i] = first + static_cast<float>(i);
  return t;
}

// Rank r's part by layout: flat pieces (the second empty), columns (some twice), everything on the
// last, some rows of some columns.
Part part_of(int layout, int rank, int ranks) {
  constexpr int64_t cuts[] = {0, 11, 11, 20};
  if (layout == 0) return {{}, cuts[rank], rank == ranks - 1 ? 35 : cuts[rank + 1]};
  if (layout == 1 && rank < 2) return {{{1, {{rank, rank + 1}, {rank + 3, rank + 4}}}}, 0, -1};
  if (layout == 1) return {{{1, {{2, 3}}}}, 0, -1};
  if (layout == 3) {
    const Part::Ranges rows[] = {{{0, 2}, {4, 5}}, {{2, 4}, {5, 7}}};
    const Part::Ranges columns[] = {{{0, 1}, {3, 4}}, {{1, 3}, {4, 5}}};
    return {{{0, rows[rank / 2]}, {1, columns[rank % 2]}}, 0, -1};
  }
  return rank == ranks - 1 ? Part{} : Part{{}, 0, 0};
}

void check_state(bool good, const char* what, int layout) {
  if (!good) fail(ORR_FAILED, "rank {}: {} (layout {})", world_info().rank, what, layout);
}

const ranks::Body parts("parts", [](const std::string&) {
  const int rank = world_info().rank, ranks = world_info().size;
  for (int layout : {0, 1, 2, 3})
    for (auto kind : {Initial::zeros, Initial::constant, Initial::uniform, Initial::normal}) {
      if (layout == 1 && ranks < 3) continue;  // nobody would hold the third column
      if (layout == 3 && ranks != 4) continue;
      auto whole = make("w", kind), state = make("w", kind), moved = make("w", kind);
      materialize({whole, moved});
      const HostTensor first = read_state(*whole);
      const Part mine = part_of(layout, rank, ranks);
      bind_states({{state, mine}, {moved, mine}}, {}, ranks);
      std::vector<std::byte> held(mine.type(state->type).bytes());
      take_part(first, mine, held.data());
      check_state(std::memcmp(held.data(), state_address(*state), held.size()) == 0, "first value",
                  layout);
      check_state(same(read_state(*moved), first), "moved", layout);
      const HostTensor next = counting(state->type, 3);
      write_state(*state, next);
      check_state(same(read_state(*state), next), "written and read", layout);
    }
  return 0;
});

const ranks::Body conflict("conflict", [](const std::string&) {
  auto state = make("layer.weight", Initial::normal);
  const int rank = world_info().rank, ranks = world_info().size;
  bind_states({{state, part_of(0, rank, ranks)}}, {}, ranks);
  try {
    bind_states({{state, Part{}}}, {}, 1);
  } catch (const Error& e) {
    return std::string(e.what()).find("'layer.weight' is held in parts") == std::string::npos ? 1
                                                                                              : 0;
  }
  return 1;
});

TEST(States, InPartsAreReadWhole) {
  for (int n : {2, 3, 4}) {
    const auto outcome = ranks::run(n, "parts", "", {"ORRERY_DEADLINE=60"});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
  }
}

TEST(States, InPartsAreRefusedToWhoWantsThemWhole) {
  const auto outcome = ranks::run(2, "conflict", "", {"ORRERY_DEADLINE=60"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

// The block of states made together is freed with the last of them.
TEST(States, OwnTheirMemory) {
  std::weak_ptr<const orr_memory> block;
  auto a = make("a", Initial::zeros), b = make("b", Initial::constant);
  materialize({a, b});
  block = a->memory;
  a.reset();
  EXPECT_FALSE(block.expired());
  EXPECT_EQ(read_state(*b).data<float>()[34], 0.5f);
  b.reset();
  EXPECT_TRUE(block.expired());
}

}  // namespace
}  // namespace orrery
