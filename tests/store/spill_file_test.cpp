// SPDX-License-Identifier: Apache-2.0
//
// A file without a name that gives back what was written, however little the kernel moves at a
// time.
#include "store/spill_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "faults.h"

namespace orrery {
namespace {

class SpillFileTest : public testing::Test {
 protected:
  ~SpillFileTest() override {
    faults::clear();
    std::filesystem::remove_all(directory_);
  }

  std::vector<unsigned char> read(const SpillFile& file, size_t count, uint64_t offset) {
    std::vector<unsigned char> bytes(count);
    file.read(bytes.data(), count, offset);
    return bytes;
  }

  const std::string directory_ = testing::TempDir() + "/spill_file_test";
  std::vector<unsigned char> bytes_ = [] {
    std::vector<unsigned char> counting(1000);
    std::iota(counting.begin(), counting.end(), static_cast<unsigned char>(0));
    return counting;
  }();
};

TEST_F(SpillFileTest, BeginsWithZerosAndHasNoName) {
  SpillFile file(directory_, 4096);
  EXPECT_EQ(read(file, 1000, 3000), std::vector<unsigned char>(1000));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(SpillFileTest, MovesAllBytesWithShortAndInterruptedCalls) {
  SpillFile file(directory_, 4096);
  faults::short_writes();
  file.write(bytes_.data(), bytes_.size(), 77);
  EXPECT_EQ(read(file, bytes_.size(), 77), bytes_);
  EXPECT_GT(faults::calls(), 100);
  EXPECT_EQ(read(file, 1, 76)[0], 0);
  EXPECT_EQ(read(file, 1, 1077)[0], 0);
}

TEST_F(SpillFileTest, AFullDiskIsAnErrorWithItsRemedy) {
  SpillFile file(directory_, 4096);
  faults::fail_at(1, ENOSPC);
  try {
    file.write(bytes_.data(), bytes_.size(), 0);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ORR_FAILED);
    EXPECT_THAT(e.what(), testing::HasSubstr(directory_ +
                                             "' cannot be written: No space left on device; free"));
  }
}

TEST_F(SpillFileTest, ReadingPastItsEndIsAnError) {
  SpillFile file(directory_, 100);
  EXPECT_THROW(read(file, 10, 95), Error);
}

TEST_F(SpillFileTest, ADirectoryThatCannotBeMadeIsNamed) {
  try {
    SpillFile("/proc/none", 1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("in '/proc/none' cannot be made"));
  }
}

}  // namespace
}  // namespace orrery
