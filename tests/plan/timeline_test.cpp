// SPDX-License-Identifier: Apache-2.0
//
// The event simulation against cases worked out by hand, the machine model against its formulas.
#include "plan/timeline.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace orrery {
namespace {

Beat compute(double seconds) { return {Beat::compute, seconds}; }
Beat post(size_t transfer) { return {Beat::post, 0, transfer}; }
Beat wait(size_t transfer) { return {Beat::wait, 0, transfer}; }

void expect(const Spent& s, double step, double compute, double exposed) {
  EXPECT_DOUBLE_EQ(s.step, step);
  EXPECT_DOUBLE_EQ(s.compute, compute);
  EXPECT_DOUBLE_EQ(s.exposed, exposed);
}

// Posted at 3 and at 5, the message travels from 5 to 7; the first rank has had nothing to do
// since 4.
TEST(Timeline, RanksMeetWhenBothAreThere) {
  const std::vector<Spent> spent =
      simulate({{{compute(3), post(0), compute(1), wait(0), compute(1)}, {{2, {1}, {7}}}},
                {{compute(5), post(0), wait(0), compute(2)}, {{2, {0}, {7}}}}});
  expect(spent[0], 9, 5, 2);
  expect(spent[1], 9, 7, 2);
  EXPECT_DOUBLE_EQ(spent[0].idle(), 2);
  EXPECT_DOUBLE_EQ(spent[1].idle(), 0);
}

// The second transfer waits for the first: 1 to 3, 3 to 6. Half of the first lies beside compute.
TEST(Timeline, ALaneCarriesOneAtATime) {
  expect(simulate({{{compute(1), post(0), post(1), compute(1), wait(1), wait(0)},
                    {{2, {}, {}}, {3, {}, {}}}}})[0],
         6, 2, 4);
}

// The receive is posted at 0, and its sender is ready at 5. On a lane of its own the sum of both
// ranks, posted at 1, need not wait for it: 1 to 3. On the same lane the ranks wait for each other,
// because the sender waits for the sum first.
TEST(Timeline, LanesDoNotHoldUpEachOther) {
  auto step = [](size_t lane) {
    const Timeline receiver{{post(0), compute(1), post(1), wait(1), compute(1), wait(0)},
                            {{1, {1}, {0}}, {2, {1}, {1}, lane}}};
    const Timeline sender{{compute(1), post(0), wait(0), compute(2), post(1), wait(1)},
                          {{2, {0}, {1}, lane}, {1, {0}, {0}}}};
    return simulate({receiver, sender});
  };
  const std::vector<Spent> spent = step(1);
  expect(spent[0], 6, 2, 3);
  expect(spent[1], 6, 3, 3);
  EXPECT_THROW(step(0), Error);
}

// The sum travels from 1 to 5 and takes half of compute's speed: of the 10 seconds that follow it
// costs 2, where compute is done at 2 nothing but the wait. A second one, which travels while
// compute waits for the first on another lane, costs nothing.
TEST(Timeline, ATransferTakesItsShareOfComputesSpeed) {
  const Transfer sum{4, {}, {}, 0, "data", 0.5};
  const std::vector<Beat> beats = {compute(1), post(0), compute(10), wait(0)};
  const Spent beside = simulate({{beats, {sum}}})[0];
  expect(beside, 13, 11, 2);
  EXPECT_EQ(beside.exposed_by, (std::map<std::string, double>{{"data", 2}}));
  expect(simulate({{{compute(1), post(0), compute(1), wait(0)}, {sum}}})[0], 5, 2, 3);
  const Transfer other{4, {}, {}, 1, "tensor", 0.5};
  expect(simulate({{{post(0), post(1), wait(0), wait(1)}, {sum, other}}})[0], 4, 0, 4);
}

LinkUse all_of(size_t link) {
  LinkUse use{};
  use[link] = 1;
  return use;
}

// Two transfers of 4 seconds, of which one begins at 0 and one at 2, share a link: the first has 2
// seconds alone and 4 at half speed, the second 4 and then 2 alone. With links of their own they
// take 4 each, and so they do if each needs half of the link at most.
TEST(Timeline, LanesShareALink) {
  auto step = [](const LinkUse& first, const LinkUse& second) {
    return simulate({{{post(0), compute(2), post(1), wait(0), wait(1)},
                      {{4, {}, {}, 0, "a", 0, first}, {4, {}, {}, 1, "b", 0, second}}}})[0];
  };
  const Spent shared = step(all_of(0), all_of(0));
  expect(shared, 8, 2, 6);
  EXPECT_EQ(shared.exposed_by, (std::map<std::string, double>{{"a", 4}, {"b", 2}}));
  expect(step(all_of(0), all_of(1)), 6, 2, 4);
  expect(step({0.5}, {0.5}), 6, 2, 4);
}

// Ranks that share a network card slow each other down between hosts, inside of theirs not; and the
// receiver, whose own links are free, has the message when all of it has arrived.
TEST(Timeline, RanksShareACard) {
  auto step = [](size_t link, int ranks) {
    auto sends = [&](int64_t id) {
      return Timeline{
          {post(0), wait(0)}, {{3, {2}, {id}, 0, "", 0, all_of(link)}}, {{0, ranks}, {1, 1}}};
    };
    const Transfer from_first{3, {0}, {0}}, from_second{3, {1}, {1}, 1};
    return simulate(
        {sends(0),
         sends(1),
         {{post(0), post(1), wait(0), wait(1), compute(1)}, {from_first, from_second}}});
  };
  for (size_t rank : {0, 1}) expect(step(kBetween, 1)[rank], 7, 0, 6);
  expect(step(kBetween, 1)[2], 7, 1, 6);
  expect(step(kBetween, 3)[2], 13, 1, 12);
  expect(step(0, 1)[2], 4, 1, 3);
}

// A copy out of a tier takes from 1 to 4, of which compute waits 2 seconds, and no axis is exposed.
TEST(Timeline, CopiesBetweenTiersAreCountedByTier) {
  const Transfer copy{3, {}, {}, 0, "disk", 0, {}, true};
  const Spent spent = simulate({{{compute(1), post(0), compute(1), wait(0)}, {copy}}})[0];
  expect(spent, 4, 2, 2);
  EXPECT_EQ(spent.offload_by, (std::map<std::string, double>{{"disk", 2}}));
  EXPECT_TRUE(spent.exposed_by.empty());
}

// Two sums travel at once and share their link, each takes half of compute's speed: in the 8
// seconds that both need compute loses 4, not 8. A copy that takes no share leaves the other's
// alone.
TEST(Timeline, TransfersThatTravelTogetherTakeOneShare) {
  const Transfer one{4, {}, {}, 0, "a", 0.5, all_of(0)}, two{4, {}, {}, 1, "b", 0.5, all_of(0)};
  const std::vector<Beat> beats = {post(0), post(1), compute(20), wait(0), wait(1)};
  expect(simulate({{beats, {one, two}}})[0], 24, 20, 4);
  const Transfer copy{8, {}, {}, 1, "disk", 0, {}, true};
  expect(simulate({{beats, {one, copy}}})[0], 22, 20, 2);
}

// The sum posted at 1 has to wait for the other rank until 5, then travels until 7, and the second
// one from 7 to 10; the other rank ends at 5 + 5 + 4.
TEST(Timeline, WaitsAreCountedByAxis) {
  const Timeline early{{compute(1), post(0), post(1), wait(1)},
                       {{2, {1}, {0}, 0, "inner"}, {3, {1}, {1}, 0, "outer"}}};
  const Timeline late{{compute(5), post(0), post(1), wait(1), compute(4)},
                      {{2, {0}, {0}, 0, "inner"}, {3, {0}, {1}, 0, "outer"}}};
  const std::vector<Spent> spent = simulate({early, late});
  using Waits = std::map<std::string, double>;
  expect(spent[0], 14, 1, 5);
  EXPECT_EQ(spent[0].exposed_by, (Waits{{"inner", 2}, {"outer", 3}}));
  EXPECT_EQ(spent[0].blocked_by, (Waits{{"inner", 4}}));
  EXPECT_EQ(spent[1].exposed_by, spent[0].exposed_by);
  EXPECT_EQ(spent[1].blocked_by, Waits{});
}

// The lane is free from 2, and the second transfer begins at 6, when the peer is ready.
TEST(Timeline, ALaneThatIsFreeBetweenTransfersLeavesRanksIdle) {
  const Timeline early{{post(0), post(1), wait(1)},
                       {{2, {}, {0}, 0, "inner"}, {1, {1}, {1}, 0, "outer"}}};
  const Timeline late{{compute(6), post(0), wait(0)}, {{1, {0}, {1}, 0, "outer"}}};
  const std::vector<Spent> spent = simulate({early, late});
  using Waits = std::map<std::string, double>;
  EXPECT_EQ(spent[0].exposed_by, (Waits{{"inner", 2}, {"outer", 1}}));
  EXPECT_EQ(spent[0].blocked_by, (Waits{{"outer", 4}}));
}

// Two stages, two microbatches, forward 1 and backward 2, messages 0: the first runs F F . . B B .
// B B, the last . F B B F B B . .
TEST(Timeline, APipelineHasItsBubble) {
  auto meet = [](size_t peer, int64_t tag) { return Transfer{0, {peer}, {tag}}; };
  const Timeline first{{compute(1), post(0), compute(1), post(1), post(2), wait(2), compute(2),
                        post(3), wait(3), compute(2)},
                       {meet(1, 0), meet(1, 1), meet(1, 2), meet(1, 3)}};
  const Timeline last{
      {post(0), wait(0), compute(3), post(1), wait(1), post(2), compute(3), post(3)},
      {meet(0, 0), meet(0, 1), meet(0, 2), meet(0, 3)}};
  const std::vector<Spent> spent = simulate({first, last});
  expect(spent[0], 9, 6, 0);
  expect(spent[1], 9, 6, 0);
}

TEST(Timeline, RanksThatWaitForEachOtherAreAnError) {
  const Timeline a{{post(0), wait(0), post(1)}, {{1, {1}, {0}}, {1, {1}, {1}}}};
  const Timeline b{{post(0), wait(0), post(1)}, {{1, {0}, {1}}, {1, {0}, {0}}}};
  EXPECT_THROW(simulate({a, b}), Error);
}

Machine round_numbers() {
  Machine m;
  m.name = "test", m.matrix_flops = {{"f32", 100}};
  m.vector_flops = 10, m.memory_bandwidth = 5, m.cache_bandwidth = 20, m.cache_bytes = 1000;
  m.launch_seconds = 0.5, m.ranks_per_host = 2;
  m.inside = {1, 100}, m.between = {10, 10};
  return m;
}

Launch launch(double flops, double bytes, bool matrix, int32_t dtype = ORR_F32) {
  Launch l;
  l.cost = {flops, bytes, matrix};
  l.in.resize(1);
  l.in[0].dtype = dtype;
  return l;
}

TEST(Machine, ALaunchTakesTheLongerOfComputingAndTouching) {
  const Machine m = round_numbers();
  EXPECT_DOUBLE_EQ(m.seconds(launch(1000, 100, true)), 0.5 + 10);    // 1000 / 100 > 100 / 20
  EXPECT_DOUBLE_EQ(m.seconds(launch(1000, 100, false)), 0.5 + 100);  // 1000 / 10
  EXPECT_DOUBLE_EQ(m.seconds(launch(0, 1000, false)), 0.5 + 50);     // from the cache
  EXPECT_DOUBLE_EQ(m.seconds(launch(0, 1010, false)), 0.5 + 202);    // from memory
  EXPECT_THROW(m.seconds(launch(1, 1, true, ORR_BF16)), Error);
}

// Between 1e6 FLOPs at 1e9 and 1e8 at 4e9 the logarithms are interpolated: 1e7 have 2e9.
TEST(Machine, ARateDependsOnTheSizeOfTheLaunch) {
  const Rate rate({{1e6, 1e9}, {1e8, 4e9}});
  EXPECT_DOUBLE_EQ(rate.at(1e3), 1e9);
  EXPECT_DOUBLE_EQ(rate.at(1e6), 1e9);
  EXPECT_DOUBLE_EQ(rate.at(1e7), 2e9);
  EXPECT_DOUBLE_EQ(rate.at(1e9), 4e9);
  EXPECT_DOUBLE_EQ(rate.highest(), 4e9);
  EXPECT_DOUBLE_EQ(Rate(3e9).at(1), 3e9);
}

// `count` products [rows, depth] x [depth, columns], whose elements have two bytes.
Launch product(int64_t count, int64_t rows, int64_t columns, int64_t depth) {
  const double flops = 2.0 * static_cast<double>(count * rows * columns * depth);
  Launch l = launch(flops, 1, true, ORR_BF16);
  l.op.kind = "matmul", l.out.resize(1);
  l.in[0].rank = 3, l.out[0].rank = 3;
  const std::array in{count, rows, depth}, out{count, rows, columns};
  std::copy(in.begin(), in.end(), l.in[0].dims);
  std::copy(out.begin(), out.end(), l.out[0].dims);
  return l;
}

// 512 multiplications each. Beside the cube's 3 * 64 elements the flat product touches 32 more, of
// two bytes, at 16 bytes a second; without a bandwidth both are as fast.
TEST(Machine, AFlatProductIsSlowerThanACube) {
  Machine m = round_numbers();
  m.matrix_flops = {{"bf16", 1024}};
  EXPECT_DOUBLE_EQ(m.seconds(product(1, 8, 4, 16)), m.seconds(product(1, 8, 8, 8)));
  m.matrix_bandwidth = 16;
  EXPECT_NEAR(m.seconds(product(1, 8, 8, 8)), 0.5 + 1, 1e-12);
  EXPECT_NEAR(m.seconds(product(1, 8, 4, 16)), 0.5 + 1 + 4, 1e-12);
  EXPECT_NEAR(m.seconds(product(3, 8, 4, 16)), 0.5 + 3 * (1 + 4), 1e-12);
  Launch other = product(1, 8, 4, 16);
  other.op.kind = "attention";
  EXPECT_DOUBLE_EQ(m.seconds(other), 0.5 + 1);
}

// Four processors, tiles of 8 x 2. Of 5 tiles the last leaves three processors without work; 9
// columns need as many tiles as 10 (turned ones of 16 x 8 are as many); up to four tiles are at
// full speed. Of 10 tiles of 4 x 2 the last two leave half of the processors without work, of 15
// turned ones the last three leave one.
TEST(Machine, ProductsAreComputedInWavesOfTiles) {
  const Tiles tiles{4, 8, 2, 0.5}, good_halves{4, 8, 2, 0.9};
  EXPECT_DOUBLE_EQ(tiles.reached({1, 8, 2, 1}), 1);
  EXPECT_DOUBLE_EQ(tiles.reached({1, 8, 8, 1}), 1);
  EXPECT_DOUBLE_EQ(tiles.reached({1, 8, 10, 1}), 5. / 8);
  EXPECT_DOUBLE_EQ(tiles.reached({1, 8, 9, 1}), 72. / 128);
  EXPECT_DOUBLE_EQ(tiles.reached({1, 16, 8, 1}), 1);
  EXPECT_DOUBLE_EQ(tiles.reached({1, 10, 8, 1}), 5. / 8);
  EXPECT_DOUBLE_EQ(tiles.reached({5, 8, 2, 1}), 5. / 8);
  EXPECT_DOUBLE_EQ(good_halves.reached({1, 8, 10, 1}), 0.9 * 10 / 12);
  EXPECT_DOUBLE_EQ(good_halves.reached({1, 10, 12, 1}), 0.9 * 15 / 16);
  EXPECT_DOUBLE_EQ(good_halves.reached({1, 12, 10, 1}), 0.9 * 15 / 16);
  Machine m = round_numbers();
  m.matrix_flops = {{"bf16", 160}}, m.matrix_tiles = tiles;
  EXPECT_DOUBLE_EQ(m.seconds(product(1, 8, 10, 8)), 0.5 + 8 * 8. / 5);
}

TEST(Machine, AnExchangeTakesTheSlowestWay) {
  const Machine m = round_numbers();
  Mesh mesh;
  mesh.world = 4, mesh.axes = {{"outer", 2, ""}, {"inner", 2, ""}};
  Exchange e;
  e.op = ORR_COLL_SEND, e.count = 250, e.root_or_peer = 1;
  e.axis = "inner";  // ranks 0 and 1, one host: a latency and 1000 bytes
  EXPECT_DOUBLE_EQ(m.trip(e, mesh, 0).seconds, 1 + 10);
  e.axis = "outer";  // ranks 0 and 2
  EXPECT_DOUBLE_EQ(m.trip(e, mesh, 0).seconds, 10 + 100);
  e.op = ORR_COLL_ALL_REDUCE, e.axis = "inner", e.count = 256;  // 1024 bytes, each sends half twice
  EXPECT_DOUBLE_EQ(m.trip(e, mesh, 0).seconds, 2 + 10.24);
  EXPECT_DOUBLE_EQ(m.trip(e, mesh, 0).use[0], 10.24 / 12.24);
}

// Both ranks of a host have one card, which is twice as fast as the bandwidth of each says.
TEST(Machine, ARankAloneHasAWholeCard) {
  Machine m = round_numbers();
  Mesh mesh;
  mesh.world = 4, mesh.axes = {{"outer", 2, ""}, {"inner", 2, ""}};
  Exchange e;
  e.op = ORR_COLL_RECV, e.count = 250, e.root_or_peer = 1, e.axis = "outer";
  EXPECT_TRUE(m.share_card(3, 4).empty());
  m.cards_per_host = 1;
  EXPECT_EQ(m.share_card(3, 4), (std::vector<int>{2, 3}));
  EXPECT_DOUBLE_EQ(m.trip(e, mesh, 0).seconds, 10 + 50);
  EXPECT_EQ(m.trip(e, mesh, 0).use, (LinkUse{0, 0, 0, 50. / 60}));
}

// Eight hosts of two ranks: groups of two hosts, and groups of four whose links upwards have a
// quarter, or an eighth, of what their hosts have.
TEST(Machine, GroupsOfHostsShareLinksUpwards) {
  Machine m = round_numbers();
  m.levels = {{2, 3, 1}, {4, 5, 4}};
  Mesh mesh;
  mesh.world = 16, mesh.axes = {{"outer", 2, ""}, {"middle", 4, ""}, {"inner", 2, ""}};
  Exchange e;
  e.op = ORR_COLL_ALL_REDUCE, e.axis = "outer", e.count = 256;  // each sends 1024 bytes
  // Hosts 0 and 4. Each is alone in its group, whose other hosts have such exchanges, too.
  EXPECT_DOUBLE_EQ(m.trip(e, mesh, 0).seconds, 2 * (10 + 3 + 5) + 4 * 102.4);
  e.op = ORR_COLL_SEND, e.count = 250, e.root_or_peer = 1;
  EXPECT_DOUBLE_EQ(m.trip(e, mesh, 0).seconds, 10 + 3 + 5 + 4 * 100);
  e.axis = "inner";
  EXPECT_DOUBLE_EQ(m.trip(e, mesh, 0).seconds, 1 + 10);
  // All hosts, in four groups and in two; the four of a group send out once, and a quarter is
  // enough for that.
  mesh.axes = {{"outer", 8, ""}, {"inner", 2, ""}};
  e.op = ORR_COLL_ALL_REDUCE, e.axis = "outer", e.count = 256;  // 2 * 7/8 of 1024 bytes
  EXPECT_DOUBLE_EQ(m.trip(e, mesh, 0).seconds, 6 * 10 + 4 * 3 + 2 * 5 + 179.2);
  m.levels[1].oversubscription = 8;
  EXPECT_DOUBLE_EQ(m.trip(e, mesh, 0).seconds, 6 * 10 + 4 * 3 + 2 * 5 + 2 * 179.2);
}

// A ring has a step less than members, and twice that where a sum comes back, unless a tree's
// rounds take less.
TEST(Machine, RingsTakeAStepForEachMember) {
  Machine m = round_numbers();
  Mesh mesh;
  mesh.world = 16, mesh.axes = {{"outer", 8, ""}, {"inner", 2, ""}};
  Exchange e;
  e.op = ORR_COLL_ALL_REDUCE, e.axis = "outer", e.count = 256;
  m.between.hop = 0.5;
  EXPECT_DOUBLE_EQ(m.trip(e, mesh, 0).seconds, 2 * 7 * 0.5 + 179.2);
  m.between.hop = 5;
  EXPECT_DOUBLE_EQ(m.trip(e, mesh, 0).seconds, 6 * 10 + 179.2);
  e.op = ORR_COLL_ALL_GATHER, e.count = 32,
  e.counts = Dims(8, 32);  // 128 bytes of each, sent on seven times
  EXPECT_DOUBLE_EQ(m.trip(e, mesh, 0).seconds, 7 * 5 + 89.6);
}

// Mean largest of as many normal deviations, from tables: 0.564 of 2, 1.539 of 10, 3.241 of 1000.
TEST(Machine, TheSlowestOfManyIsSlower) {
  Machine m = round_numbers();
  EXPECT_EQ(m.slowest(1000), 0);
  m.jitter = 0.1;
  EXPECT_EQ(m.slowest(1), 0);
  EXPECT_NEAR(m.slowest(2), 0.0564, 0.003);
  EXPECT_NEAR(m.slowest(10), 0.1539, 0.001);
  EXPECT_NEAR(m.slowest(1000), 0.3241, 0.002);
}

}  // namespace
}  // namespace orrery
