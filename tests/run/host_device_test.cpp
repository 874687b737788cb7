// SPDX-License-Identifier: Apache-2.0
//
// Host memory: zeroed, aligned, honest when it cannot be had.
#include "run/host_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "plugin/host.h"

namespace orrery {
namespace {

class HostDevice : public ::testing::TestWithParam<uint64_t> {
 protected:
  const orr_device_api& device_ = host_device();
};

TEST_P(HostDevice, AllocatesZeroedAlignedMemory) {
  orr_memory* memory = nullptr;
  check(device_.allocate(device_.self, ORR_TIER_HOST, GetParam(), &memory));
  EXPECT_EQ(memory->bytes, GetParam());
  const uint64_t alignment = GetParam() >= (2 << 20) ? 2 << 20 : 64;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->host) % alignment, 0u);
  auto* bytes = static_cast<unsigned char*>(memory->host);
  EXPECT_EQ(std::count(bytes, bytes + GetParam(), 0), int64_t(GetParam()));
  std::memset(bytes, 0xff, GetParam());
  device_.free(device_.self, memory);
}

INSTANTIATE_TEST_SUITE_P(Sizes, HostDevice,
                         ::testing::Values(0, 1, 4097, 2 << 20, (5 << 20) + 12345));

TEST_F(HostDevice, CopiesBetweenBuffers) {
  orr_memory* memory = nullptr;
  check(device_.allocate(device_.self, ORR_TIER_HOST, 64, &memory));
  std::memcpy(memory->host, "orrery", 6);
  orr_buffer from{memory, 0, 6}, to{memory, 32, 6}, small{memory, 32, 4};
  check(device_.copy(device_.self, nullptr, &to, &from));
  EXPECT_EQ(std::memcmp(static_cast<char*>(memory->host) + 32, "orrery", 6), 0);
  EXPECT_THROW(check(device_.copy(device_.self, nullptr, &small, &from)), Error);
  device_.free(device_.self, memory);
}

TEST_F(HostDevice, RefusesWhatItCannotGive) {
  orr_memory* memory = nullptr;
  EXPECT_THROW(check(device_.allocate(device_.self, ORR_TIER_DEVICE, 64, &memory)), Error);
  EXPECT_THROW(check(device_.allocate(device_.self, ORR_TIER_HOST, uint64_t(1) << 60, &memory)),
               Error);
  EXPECT_THROW(check(device_.allocate(device_.self, ORR_TIER_HOST, UINT64_MAX, &memory)), Error);
  EXPECT_EQ(memory, nullptr);
}

}  // namespace
}  // namespace orrery
