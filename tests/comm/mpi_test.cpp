// SPDX-License-Identifier: Apache-2.0
//
// What is comm `mpi`'s own: whom it blames when several ranks are silent.
#include <gtest/gtest.h>
#include <signal.h>

#include "conformance/comm/peer.h"
#include "settings.h"

namespace comm_suite {
namespace {

using ranks::count;

class Mpi : public OnMain {};

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
