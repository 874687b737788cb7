// SPDX-License-Identifier: Apache-2.0
//
// Files that zstd has packed (make.py): what is in them, and what is refused.
#include "mutations.h"
#include "readers.h"

namespace orrery {
namespace {

std::string all_of(const DatasetPtr& data) {
  std::string bytes;
  for (int64_t i = 0; i < data->samples(); ++i)
    for (const std::byte each : read_one(*data, {i}, 0)) bytes += static_cast<char>(each);
  return bytes;
}

class Zstd : public testing::Test {
 protected:
  void SetUp() override {
    if (!ORRERY_HAS_ZSTD) GTEST_SKIP() << "built without libzstd";
  }
};

TEST(WithoutZstd, IsSaid) {
  if (ORRERY_HAS_ZSTD) GTEST_SKIP() << "built with libzstd";
  const std::string path = recorded("tokens.bin.zst");
  const std::string why = refusal([&] { token_files({path}, "u16", 3); });
  EXPECT_TRUE(why.starts_with(path + ": it is packed by zstd, and Orrery was built without it"))
      << why;
}

TEST_F(Zstd, PackedFilesAreThoseUnpacked) {
  EXPECT_EQ(all_of(cifar_files({recorded("cifar10.bin.zst")}, 10, ORR_U8)),
            all_of(cifar_files({recorded("cifar10.bin")}, 10, ORR_U8)));
  EXPECT_EQ(all_of(token_files({recorded("tokens.bin.zst")}, "u16", 3)),
            all_of(token_files({recorded("tokens.bin")}, "u16", 3)));
}

// More than is unpacked in one call, of few bytes: a block of 131,072 equal ones each.
TEST_F(Zstd, LongRunsAreUnpackedWhole) {
  const ScratchFile file("long.zst");
  std::string frame = "\x28\xb5\x2f\xfd";
  frame += std::string("\x00\x58", 2);  // no content size; a window of 2 MiB
  const auto run = [](uint32_t size, bool last) {
    const uint32_t header = size << 3 | 1 << 1 | (last ? 1 : 0);
    return std::string{static_cast<char>(header), static_cast<char>(header >> 8),
                       static_cast<char>(header >> 16), '\7'};
  };
  for (int i = 0; i < 4; ++i) frame += run(1 << 17, i == 3);
  file.write(frame);
  const DatasetPtr data = token_files({file.path()}, "u16", 7);
  EXPECT_EQ(data->samples(), 4 * (1 << 17) / 2 - 7);
  EXPECT_EQ(read_one(*data, {data->samples() - 1}, 1)[4], std::byte{7});
}

TEST_F(Zstd, DamagedFilesAreRefused) {
  const ScratchFile file("damaged.zst");
  const std::string whole = contents(recorded("cifar10.bin.zst"));
  const auto refused = [&](const std::string& bytes, const std::string& why) {
    file.write(bytes);
    const std::string said = refusal([&] { cifar_files({file.path()}, 10, ORR_U8); });
    EXPECT_TRUE(said.starts_with(file.path() + why)) << said;
  };
  for (const size_t kept : {size_t{5}, size_t{20}, whole.size() / 2, whole.size() - 1})
    refused(whole.substr(0, kept), ": the packed file is cut short");
  refused(whole + "x", ": the packed file is");
  refused(whole + "xyzabc", ": the packed file is altered (Unknown frame descriptor)");
  std::string altered = whole;
  altered.back() ^= 1;  // of the checksum
  refused(altered, ": the packed file is altered (Restored data doesn't match checksum)");
  const ScratchFile other("tokens.bin");
  other.write(contents(recorded("tokens.bin.zst")).substr(12));
  EXPECT_EQ(refusal([&] {
              token_files({other.path()}, "u16", 3);
            }).find(other.path() + ": it is packed by zstd, and not named .zst"),
            0u);
}

TEST_F(Zstd, MutationsAreRefused) {
  const ScratchFile file("mutated.zst");
  expect_mutations_stand(contents(recorded("cifar10.bin.zst")), file, 900, {"x", "\xff\xff"},
                         [&] { all_of(cifar_files({file.path()}, 10, ORR_U8)); });
}

}  // namespace
}  // namespace orrery
