// SPDX-License-Identifier: Apache-2.0
//
// What is comm `mpi`'s own: where its agreement travels, who moves what is long, and whom it blames
// when several are silent.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "conformance/comm/bodies.h"
#include "conformance/comm/peer.h"
#include "settings.h"

namespace comm_suite {
namespace {

using ranks::count;

class Mpi : public OnMain {};

// Argument: how many of the world's and its halves' agreements shall travel through memory.
const Body maps_notices("maps notices", [](const std::string& backend, const std::string& wanted) {
  Peer world(backend);
  const Peer half(world, world.rank() / 2, 0);
  int found = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    found += line.find("memfd:orrery (") != std::string::npos;
  if (found != std::stoi(wanted)) fail(ORR_FAILED, "{} notices are mapped, not {}", found, wanted);
  world.barrier();
  return 0;
});

TEST_P(Mpi, RanksOfOneHostAgreeThroughMemory) {
  const auto outcome = run(GetParam(), 4, "maps notices", GetParam().hosts.empty() ? "2" : "1");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

// The libraries end a job where they find out too late that ranks may not reach each other.
const std::vector<std::string> out_of_reach = {"OMPI_MCA_btl_vader_single_copy_mechanism=none",
                                               "UCX_TLS=self,posix", "ORRERY_DEADLINE=10"};

TEST_P(Mpi, WhereNoRankReachesAnotherTheLibraryMovesAll) {
  Setting apart = GetParam();
  apart.apart = true;
  for (const char* body : {"pairs", "splits"}) {
    const auto outcome = run(apart, 4, body, "", out_of_reach);
    EXPECT_EQ(outcome.code, 0) << body << ": " << outcome.output;
  }
}

orr_coll message(int op, int peer, int tag, const orr_buffer& b, int64_t n) {
  orr_coll c = Peer::make(op, ORR_I32);
  c.root_or_peer = peer;
  c.tag = tag;
  (op == ORR_COLL_SEND ? c.send : c.recv) = b;
  c.count = n;
  return c;
}

// n words of every rank, gathered behind its own and then added up there.
void gather_and_add(Peer& peer, Slab& slab, int n) {
  const int P = peer.size(), me = peer.rank();
  const uint64_t bytes = n * sizeof(int32_t);
  int32_t* const words = reinterpret_cast<int32_t*>(slab.at(0));
  const std::vector<int64_t> counts(P, n);
  orr_coll c = Peer::make(ORR_COLL_ALL_GATHER, ORR_I32);
  c.send = slab.part(0, bytes);
  c.recv = slab.part(bytes, bytes * P);
  c.counts = counts.data();
  for (int i = 0; i < n; ++i) words[i] = 10 * i + me;
  peer.post(c);
  for (int i = 0; i < n * P; ++i)
    if (words[n + i] != 10 * (i % n) + i / n) fail(ORR_FAILED, "word {} is {}", i, words[n + i]);
  c.op = ORR_COLL_ALL_REDUCE;
  c.count = n;
  peer.post(c);
  for (int i = 0; i < n; ++i)
    if (words[n + i] != P * 10 * i + P * (P - 1) / 2)
      fail(ORR_FAILED, "sum {} is {}", i, words[n + i]);
}

const Body reach_ends("reach ends", [](const std::string& backend, const std::string&) {
  Peer peer(backend);
  peer.barrier();
  if (peer.rank() > 0) forbid_reaching_peers();
  Slab slab(peer, false, 24 << 20);
  // Heads of one direction are one ahead of the other's, so that no numbers agree by chance.
  const orr_buffer word = slab.part(0, sizeof(int32_t));
  if (peer.rank() == 1) peer.post(message(ORR_COLL_SEND, 2, 0, word, 1));
  if (peer.rank() == 2) peer.post(message(ORR_COLL_RECV, 1, 0, word, 1));
  for (int n : {300, 20000, 5000, 3 << 19})
    for (int again = 0; again < 5; ++again) gather_and_add(peer, slab, n);
  return 0;
});

TEST_P(Mpi, WhatCannotBeReachedTheLibraryMoves) {
  const auto outcome = run(GetParam(), 3, "reach ends", "", out_of_reach);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

// The judge's collectives, in whose midst it happens: other ranks than the first lose it later.
const Body loses_reach("loses reach", [](const std::string& backend, const std::string&) {
  const std::jthread later([rank = orrery::detect().rank] {
    usleep(600000 + 100000 * rank);
    if (rank > 0) forbid_reaching_peers();
  });
  return collective_bodies().front().run(backend, "");
});

TEST_P(Mpi, CollectivesOutliveTheLossOfReach) {
  const auto outcome = run(GetParam(), 4, "loses reach", "", out_of_reach);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

// Rank 0 sends more than it can lend at a time, and looks at nothing while rank 1 reads.
const Body lends_more("lends more", [](const std::string& backend, const std::string&) {
  constexpr int messages = 40, n = 5000;
  Peer peer(backend);
  Slab slab(peer, false, (messages + 1) * n * sizeof(int32_t));
  int32_t* const words = reinterpret_cast<int32_t*>(slab.at(0));
  const auto group = [&](int op, int from, int to) {
    std::vector<orr_coll> ops;
    for (int i = from; i < to; ++i)
      ops.push_back(
          message(op, 1 - peer.rank(), i, slab.part(i * n * sizeof *words, n * sizeof *words), n));
    return ops;
  };
  if (peer.rank() == 0) {
    words[0] = getpid();
    for (int i = n; i < (messages + 1) * n; ++i) words[i] = i;
    peer.post(group(ORR_COLL_SEND, 0, messages + 1));
  } else {
    peer.post(group(ORR_COLL_RECV, messages, messages + 1));
    peer.post(group(ORR_COLL_RECV, 0, 1));
    kill(words[0], SIGSTOP);
    std::thread later([pid = words[0]] {
      usleep(200000);
      kill(pid, SIGCONT);
    });
    peer.post(group(ORR_COLL_RECV, 1, messages));
    later.join();
    for (int i = n; i < (messages + 1) * n; ++i)
      if (words[i] != i) fail(ORR_FAILED, "word {} is {}", i, words[i]);
  }
  peer.barrier();
  return 0;
});

TEST_P(Mpi, MoreIsLentThanThereAreSlots) {
  const auto outcome = run(GetParam(), 2, "lends more", "", {"ORRERY_DEADLINE=5"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

// Argument: the first rank of those that freeze.
const Body freeze("freeze", [](const std::string& backend, const std::string& first) {
  Peer peer(backend);
  peer.barrier();
  if (peer.rank() >= std::stoi(first)) raise(SIGSTOP);
  orr_coll c = Peer::make(ORR_COLL_BARRIER);
  c.name = "meeting";
  c.deadline_ns = 1000000000;
  peer.post(c);
  return 0;
});

// Rank 1 may be mute in the library's queue of a frozen one: its process answers.
TEST_P(Mpi, OnlyFrozenRanksAreNamed) {
  const auto outcome = run(GetParam(), 4, "freeze", "2", {"ORRERY_DEADLINE=20"});
  EXPECT_GE(count(outcome.output, "rank 2 has not answered for 1 s in barrier 'meeting'"), 1)
      << outcome.output;
  EXPECT_NE(outcome.code, 0);
}

std::vector<Setting> settings_of_mpi() {
  std::vector<Setting> found;
  for (const Setting& s : settings())
    if (s.backend == "mpi") found.push_back(s);
  return found;
}

const auto names = [](const testing::TestParamInfo<Setting>& info) { return name_of(info.param); };
INSTANTIATE_TEST_SUITE_P(Backends, Mpi, testing::ValuesIn(settings_of_mpi()), names);

}  // namespace
}  // namespace comm_suite
