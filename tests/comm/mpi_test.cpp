// SPDX-License-Identifier: Apache-2.0
//
// What is comm `mpi`'s own: where its agreement travels, and whom it blames when several are
// silent.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "check/comm/peer.h"
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

TEST_P(Mpi, AllSilentRanksAreNamed) {
  const auto outcome = run(GetParam(), 4, "freeze", "2", {"ORRERY_DEADLINE=20"});
  EXPECT_GE(
      count(outcome.output, "rank 2 and rank 3 have not answered for 1 s in barrier 'meeting'"), 1)
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
