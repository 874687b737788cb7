// SPDX-License-Identifier: Apache-2.0
//
// Bit rot, truncation and mixed files: a checkpoint that is not what was saved never loads.
#include <gmock/gmock.h>

#include "fixture.h"

namespace orrery {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kFiles = {"model.safetensors", "optimizer.safetensors",
                                         "checkpoint.json"};

class Damage : public StoreTest {
 protected:
  std::string load_error() {
    return error_of([&] { load_checkpoint(path("ck")); });
  }
};

TEST_F(Damage, EveryFlippedByteIsSeen) {
  save_checkpoint(path("ck"), facts_of_step(3), small_tensors(0));
  for (const std::string& file : kFiles) {
    const std::string name = path("ck/" + file), good = slurp(name);
    ASSERT_GT(good.size(), 100u);
    for (size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
      spill(name, bad);
      ASSERT_THAT(load_error(), HasSubstr(file)) << "byte " << i;
    }
    spill(name, good);
  }
  EXPECT_TRUE(holds(load_checkpoint(path("ck")), small_tensors(0)));
}

TEST_F(Damage, EveryTruncationIsSeen) {
  save_checkpoint(
      path("ck"), facts_of_step(3),
      {{"w", true, filled({ORR_F32, {64, 64}}, 0)}, {"m", false, filled({ORR_F32, {2000}}, 1)}});
  for (const std::string& file : kFiles) {
    const std::string name = path("ck/" + file), good = slurp(name);
    const size_t step = file == "checkpoint.json" ? 1 : 512;
    for (size_t size = 0; size < good.size(); size += step) {
      spill(name, good.substr(0, size));
      std::string expected = fmt::format("'{}': {} ", path("ck"), file);
      if (step == 512)
        expected += fmt::format("is truncated: {} of {} bytes; restore", size, good.size());
      ASSERT_THAT(load_error(), HasSubstr(expected)) << "at " << size;
    }
    spill(name, good);
  }
  load_checkpoint(path("ck"));
}

TEST_F(Damage, AnAlteredTensorIsNamedByFile) {
  save_checkpoint(path("ck"), facts_of_step(3), small_tensors(0));
  std::string bytes = slurp(path("ck/optimizer.safetensors"));
  bytes.back() ^= 1;
  spill(path("ck/optimizer.safetensors"), bytes);
  EXPECT_THAT(load_error(), HasSubstr("': optimizer.safetensors was altered: its digest is "));
}

TEST_F(Damage, TrailingBytesAreSeen) {
  save_checkpoint(path("ck"), facts_of_step(3), small_tensors(0));
  spill(path("ck/model.safetensors"), slurp(path("ck/model.safetensors")) + "12345");
  EXPECT_THAT(load_error(), HasSubstr("model.safetensors has 5 bytes after the "));
  save_checkpoint(path("ck"), facts_of_step(3), small_tensors(0));
  spill(path("ck/checkpoint.json"), slurp(path("ck/checkpoint.json")) + "\n");
  EXPECT_THAT(load_error(), HasSubstr("checkpoint.json was altered"));
}

TEST_F(Damage, AFileOfAnotherStepIsSeen) {
  save_checkpoint(path("ck"), facts_of_step(1), small_tensors(1));
  save_checkpoint(path("other"), facts_of_step(2), small_tensors(2));
  std::filesystem::copy(path("other/model.safetensors"), path("ck/model.safetensors"),
                        std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(load_error(), HasSubstr("model.safetensors was altered: its digest is "));
}

}  // namespace
}  // namespace orrery
