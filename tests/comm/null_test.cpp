// SPDX-License-Identifier: Apache-2.0
//
// `null` joins no ranks, and says so where there are several.
#include <gtest/gtest.h>

#include "conformance/comm/peer.h"

namespace comm_suite {
namespace {

TEST(Null, SaysThatSeveralRanksTrainNothing) {
  const orr_comm_api& api = orrery::Registry::get().comm("null");
  orr_comm_boot boot{};
  boot.size = sizeof boot, boot.world_size = 4;
  orr_comm* comm = nullptr;
  try {
    check(api.world(api.self, &boot, &comm));
    FAIL() << "it joined them";
  } catch (const orrery::Error& e) {
    EXPECT_EQ(e.code(), ORR_INVALID);
    EXPECT_NE(std::string(e.what()).find("4 ranks train nothing together"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace comm_suite
