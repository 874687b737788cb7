// SPDX-License-Identifier: Apache-2.0
//
// Bit rot, truncation and mixed files: a checkpoint that is not what was saved never loads.
#include <gmock/gmock.h>

#include <climits>
#include <random>

#include "base/digest.h"
#include "faults.h"
#include "fixture.h"
#include "store/manifest.h"
#include "store/safetensors_header.h"

namespace orrery {
namespace {

using testing::HasSubstr;

const std::string kData = "1/shard-00001-model-00001-of-00001.safetensors";
const std::vector<std::string> kFiles = {kData, "checkpoint.json"};

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
  save_checkpoint(path("ck"), facts_of_step(3),
                  {{"w", filled({ORR_F32, {64, 64}}, 0)}, {"m", filled({ORR_F32, {2000}}, 1)}});
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

// Only what is provably not what was saved is passed over by --fallback.
TEST_F(Damage, IsToldFromWhatCannotBeReadNow) {
  const std::string root = std::filesystem::path(path("x")).parent_path();
  const auto is_damaged = [&](const std::function<void(const std::string&)>& change,
                              const std::string& file) {
    std::filesystem::remove_all(path("ck"));
    save_checkpoint(path("ck"), facts_of_step(3), small_tensors(0));
    change(path("ck/" + file));
    try {
      load_checkpoint(path("ck"));
    } catch (const DamagedCheckpoint&) {
      return true;
    } catch (const Error&) {
      return false;
    }
    ADD_FAILURE() << "it was loaded";
    return false;
  };
  const auto edited = [](const char* from, const char* to) {
    return [=](const std::string& name) {
      std::string text = slurp(name);
      spill(name, text.replace(text.find(from), std::strlen(from), to));
    };
  };
  const std::string manifest = "checkpoint.json";
  for (const std::string& file : kFiles) {
    EXPECT_TRUE(is_damaged([](auto& name) { spill(name, ""); }, file));
    EXPECT_TRUE(is_damaged([](auto& name) { spill(name, slurp(name) + "x"); }, file));
    EXPECT_FALSE(is_damaged(
        [](auto& name) { std::filesystem::remove(name), std::filesystem::create_directory(name); },
        file));
  }
  EXPECT_TRUE(is_damaged([](auto& name) { std::filesystem::remove(name); }, kData));
  EXPECT_TRUE(is_damaged(edited("dtype", "dtyqe"), kData));  // a header that cannot be parsed
  EXPECT_TRUE(is_damaged(edited("\"step\": 3", "\"step\": 4"), manifest));
  EXPECT_TRUE(is_damaged(edited("orrery-checkpoint", "orrery-chfckpoint"), manifest));
  EXPECT_FALSE(is_damaged(edited("\"version\": 3", "\"version\": 4"), manifest));
  EXPECT_FALSE(
      is_damaged([](auto& name) { spill(name, "{\"format\": \"of others\"}"); }, manifest));
  for (const std::string& closed : {path("ck/" + kData), path("ck/1"), path("ck")}) {
    std::filesystem::remove_all(path("ck"));
    save_checkpoint(path("ck"), facts_of_step(3), small_tensors(0));
    std::filesystem::permissions(closed, std::filesystem::perms::none);
    EXPECT_THAT(
        as_user(root,
                [&] {
                  try {
                    load_checkpoint(path("ck"));
                  } catch (const DamagedCheckpoint& e) {
                    fail(ORR_FAILED, "damaged: {}", e.what());
                  }
                }),
        testing::AllOf(HasSubstr("Permission denied"), testing::Not(HasSubstr("damaged:"))));
    std::filesystem::permissions(closed, std::filesystem::perms::all);
  }
}

TEST_F(Damage, ADiskThatFailsForAMomentIsAskedAgain) {
  save_checkpoint(path("ck"), facts_of_step(3), small_tensors(0));
  for (int error : {EIO, ESTALE, ETIMEDOUT}) {
    faults::fail_reads(2, error);
    EXPECT_TRUE(holds(load_checkpoint(path("ck")), small_tensors(0)));
  }
  faults::fail_reads(INT_MAX, EIO);
  EXPECT_THAT(load_error(), HasSubstr("checkpoint.json cannot be read: Input/output error; check"));
  faults::clear();
}

// The newest of a series is not passed over in silence because it cannot be looked at.
TEST_F(Damage, OfASeriesNothingIsTakenForAbsent) {
  const std::string root = std::filesystem::path(path("x")).parent_path(), all = path("all");
  for (int64_t step : {10, 20})
    save_checkpoint(series_path(all, step), facts_of_step(step), small_tensors(0), 1, all);
  for (const std::string& closed : {series_path(all, 20), all}) {
    std::filesystem::permissions(closed, std::filesystem::perms::none);
    EXPECT_THAT(as_user(root, [&] { load_checkpoint(all); }), HasSubstr("Permission denied"));
    std::filesystem::permissions(closed, std::filesystem::perms::all);
  }
  EXPECT_THAT(error_of([&] { checkpoints_in(series_path(all, 10) + "/checkpoint.json"); }),
              HasSubstr("of checkpoints cannot be read: Not a directory; check the path"));
  EXPECT_TRUE(checkpoints_in(path("none")).empty());
}

TEST_F(Damage, AnAlteredTensorIsNamedByFile) {
  save_checkpoint(path("ck"), facts_of_step(3), small_tensors(0));
  std::string bytes = slurp(path("ck/" + kData));
  bytes.back() ^= 1;
  spill(path("ck/" + kData), bytes);
  EXPECT_THAT(load_error(), HasSubstr("': " + kData + " was altered: its digest is "));
}

TEST_F(Damage, TrailingBytesAreSeen) {
  save_checkpoint(path("ck"), facts_of_step(3), small_tensors(0));
  spill(path("ck/" + kData), slurp(path("ck/" + kData)) + "12345");
  EXPECT_THAT(load_error(), HasSubstr(kData + " has 5 bytes after the "));
  save_checkpoint(path("ck"), facts_of_step(3), small_tensors(0));
  spill(path("ck/checkpoint.json"), slurp(path("ck/checkpoint.json")) + "\n");
  EXPECT_THAT(load_error(), HasSubstr("checkpoint.json was altered"));
}

TEST_F(Damage, AFileOfAnotherStepIsSeen) {
  save_checkpoint(path("ck"), facts_of_step(1), small_tensors(1));
  save_checkpoint(path("other"), facts_of_step(2), small_tensors(2));
  std::filesystem::copy(path("other/" + kData), path("ck/" + kData),
                        std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(load_error(), HasSubstr(kData + " was altered: its digest is "));
}

Manifest parsed(const std::string& text) { return parse_manifest(text, "ck"); }

// The seal fits: it guards against damage, not against whoever can compute it.
std::string sealed(const std::string& step, const std::string& extra) {
  std::string body = fmt::format(
      R"({{"format": "orrery-checkpoint", "version": 3, "step": {}, "microbatches": 1, "seed": 1,)"
      R"( "extra": {}, "tensors": {{}}, "files": {{}})",
      step, extra);
  Digest digest;
  digest.add(body.data(), body.size());
  return fmt::format("{},\n  \"xxh3_64\": \"{}\"\n}}\n", body, digest.text());
}

TEST(Manifest, RefusesStepsThatAreNone) {
  EXPECT_EQ(parsed(sealed("7", "\"\"")).facts.step, 7);
  for (const char* step : {"1e300", "-5", "2.5", "18446744073709551615", "\"7\"", "null", "[7]"})
    EXPECT_THAT(error_of([&] { parsed(sealed(step, "\"\"")); }), HasSubstr("out of range")) << step;
}

TEST(Manifest, RefusesBracketsWithoutEndAtOnce) {
  for (const char* bracket : {"[", "{\"a\":"}) {
    std::string deep = "{\"a\": ";
    while (deep.size() < (12 << 20)) deep += bracket;
    EXPECT_THAT(error_of([&] { parsed(deep); }), HasSubstr("is not a JSON object"));
  }
}

// Edits of all three files, with seals that fit again: read, or refused by an Error.
TEST_F(Damage, MutationsAreReadOrRefused) {
  save_checkpoint(path("ck"), facts_of_step(3), small_tensors(0));
  std::mt19937 random(7);
  const std::string pieces[] = {"-1", "1e300", "18446744073709551615", "[", "{", "\"", ",",
                                "0",  "../x"};
  const std::string good = slurp(path("ck/checkpoint.json"));
  const std::string header = slurp(path("ck/" + kData));
  for (int round = 0; round < 4000; ++round) {
    std::string text = round % 2 ? good : header;
    for (unsigned edits = random() % 3 + 1; edits > 0; --edits) {
      const std::string& piece = pieces[random() % std::size(pieces)];
      const size_t at = random() % std::min<size_t>(text.size(), 400);
      random() % 2 ? text.insert(at, piece) : text.replace(at, piece.size(), piece);
    }
    if (round % 2) {
      if (const size_t seal = text.rfind(",\n  \"xxh3_64\""); seal != text.npos) text.resize(seal);
      Digest digest;
      digest.add(text.data(), text.size());
      text += fmt::format(",\n  \"xxh3_64\": \"{}\"\n}}\n", digest.text());
    }
    try {
      if (round % 2) {
        parsed(text);
      } else if (text.size() > 8) {
        uint64_t length = 0;
        std::memcpy(&length, text.data(), 8);
        const std::string_view rest = std::string_view(text).substr(8);
        if (length <= rest.size())
          parse_safetensors_header(rest.substr(0, length), rest.size() - length, "ck");
      }
    } catch (const Error& e) {
      EXPECT_TRUE(std::string(e.what()).starts_with("ck")) << e.what();
    }
  }
}

}  // namespace
}  // namespace orrery
