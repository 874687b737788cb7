// SPDX-License-Identifier: Apache-2.0
//
// What goes in comes out, what is overwritten is a checkpoint, and what is wrong is named.
#include "store/checkpoint.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <set>

#include "base/digest.h"
#include "fixture.h"
#include "store/own_files.h"

namespace orrery {
namespace {

using testing::HasSubstr;

class CheckpointTest : public StoreTest {
 protected:
  // As a writer that died has left it.
  void begin_folder(const std::string& directory, const std::string& name) {
    make_marked_folder(path(directory), name);
    spill(path(directory + "/" + name + "/shard-00002-model-00001-of-00001.safetensors"), "half");
  }
};

const std::string kFile = "1/shard-00001-model-00001-of-00001.safetensors";

std::vector<NamedTensor> every_type() {
  std::vector<NamedTensor> tensors;
  for (int32_t dtype : {ORR_F32, ORR_F64, ORR_BF16, ORR_F16, ORR_I32, ORR_I64, ORR_U8, ORR_BOOL})
    for (const Dims& dims :
         {Dims{}, Dims{0}, Dims{3, 0, 2}, Dims{7}, Dims{2, 3, 4, 1, 1, 1, 1, 5}}) {
      std::string name = dtype_name(dtype) + to_string(dims);
      tensors.push_back({name, filled({dtype, dims}, static_cast<unsigned>(dtype))});
    }
  return tensors;
}

TEST_F(CheckpointTest, KeepsEveryTypeAndFact) {
  CheckpointFacts facts{1234567890123, 7, UINT64_MAX, std::string("a\0\"\\\n\t\x7f é", 11), true};
  save_checkpoint(path("ck"), facts, every_type());
  const Checkpoint loaded = load_checkpoint(path("ck"));
  EXPECT_TRUE(holds(loaded, every_type()));
  EXPECT_EQ(loaded.facts().step, facts.step);
  EXPECT_EQ(loaded.facts().microbatches, facts.microbatches);
  EXPECT_EQ(loaded.facts().seed, facts.seed);
  EXPECT_EQ(loaded.facts().extra, facts.extra);
  EXPECT_TRUE(loaded.facts().fast_sums);
  EXPECT_EQ(leftovers(), 0);
}

TEST_F(CheckpointTest, MayHoldNoTensors) {
  save_checkpoint(path("ck"), {}, {});
  EXPECT_TRUE(load_checkpoint(path("ck")).tensors().empty());
}

TEST_F(CheckpointTest, KeepsNamesAsTheyAre) {
  std::vector<NamedTensor> tensors;
  for (const char* name : {"../x", "a\"b\\c", "größe", "dtype", "line\nend", " "})
    tensors.push_back({name, filled({ORR_U8, {3}}, 1)});
  save_checkpoint(path("ck"), {}, tensors);
  EXPECT_TRUE(holds(load_checkpoint(path("ck")), tensors));
}

TEST_F(CheckpointTest, SameContentsMakeTheSameFiles) {
  auto tensors = every_type();
  save_checkpoint(path("a"), facts_of_step(1), tensors);
  std::reverse(tensors.begin(), tensors.end());
  save_checkpoint(path("b"), facts_of_step(1), tensors);
  for (const std::string& file : {kFile, std::string("checkpoint.json")})
    EXPECT_EQ(slurp(path("a/") + file), slurp(path("b/") + file)) << file;
}

TEST_F(CheckpointTest, ReplacesACheckpointOrAnEmptyDirectory) {
  std::filesystem::create_directory(path("ck"));
  for (unsigned i = 0; i < 3; ++i) {
    save_checkpoint(path("ck"), facts_of_step(i), small_tensors(i));
    EXPECT_TRUE(holds(load_checkpoint(path("ck")), small_tensors(i)));
    EXPECT_EQ(load_checkpoint(path("ck")).facts().step, i);
  }
  EXPECT_EQ(leftovers(), 0);
}

TEST_F(CheckpointTest, SweepsLeftoversMakesParentsAndFollowsALinkToIt) {
  save_checkpoint(path("ck/"), facts_of_step(1), small_tensors(1));
  begin_folder("ck", "7");
  spill(path("ck/checkpoint.json.new"), "{\n  \"form");
  save_checkpoint(path("ck/"), facts_of_step(1), small_tensors(1));
  EXPECT_EQ(leftovers(), 0);
  EXPECT_TRUE(std::filesystem::exists(path("ck/8")));  // a dying job may still write to its folder
  save_checkpoint(path("new/deep/ck"), facts_of_step(1), small_tensors(1));
  std::filesystem::create_directory_symlink("new/deep/ck", path("latest"));
  save_checkpoint(path("latest"), facts_of_step(2), small_tensors(2));
  EXPECT_TRUE(std::filesystem::is_symlink(path("latest")));
  EXPECT_TRUE(holds(load_checkpoint(path("new/deep/ck")), small_tensors(2)));
}

// Every number of writers makes the same tensors, and a part of a tensor can be read without it.
TEST_F(CheckpointTest, ReadsWhatAnyNumberOfWritersHaveCut) {
  const auto tensors = every_type();
  for (int writers : {1, 2, 3, 7}) {
    save_checkpoint(path("ck"), facts_of_step(1), tensors, writers);
    const auto loaded = load_checkpoint(path("ck"));
    ASSERT_TRUE(holds(loaded, tensors)) << writers;
    for (const auto& [name, source] : tensors) {
      const HostTensor whole = source.read();
      const Dims& dims = source.type.dims;
      if (dims.size() < 8) continue;
      for (const Part& part : {Part{{{0, {{1, 2}}}, {7, {{0, 2}, {4, 5}}}}, 0, -1},
                               Part{{{1, {{2, 3}, {0, 1}}}}, 5, 17}, Part{{}, 3, 101}}) {
        std::vector<std::byte> read(part.type(source.type).bytes()), expected(read.size());
        loaded.read(name, part, read.data());
        take_part(whole, part, expected.data());
        ASSERT_EQ(read, expected) << name << " of " << writers;
      }
    }
  }
}

TEST_F(CheckpointTest, RefusesBoxesThatDoNotMakeTheTensors) {
  const auto tensors = small_tensors(1);
  CheckpointWriter writer(path("ck"));
  std::vector<ShardBox> pieces;
  for (const NamedTensor& t : tensors)
    for (ShardBox& piece : share_of(t, 0, 2)) pieces.push_back(std::move(piece));
  const std::string text = to_text(write_shard(writer.folder(), 0, pieces));
  TensorTypes types;
  for (const NamedTensor& t : tensors) types[t.first] = t.second.type;
  EXPECT_THAT(error_of([&] { writer.complete({}, types, {text}); }),
              HasSubstr("2 elements of 'b' were written, bf16[5] expected"));
}

TEST_F(CheckpointTest, OpensTheNewestOfASeries) {
  for (int64_t step : {3, 20, 7}) {
    save_checkpoint(series_path(path("all"), step), facts_of_step(step), small_tensors(step), 1,
                    path("all"));
    EXPECT_EQ(load_checkpoint(path("all")).facts().step,
              std::max<int64_t>(step, step == 7 ? 20 : 0));
  }
  std::filesystem::create_directory(series_path(path("all"), 30));  // of a writer that died
  EXPECT_EQ(load_checkpoint(path("all")).facts().step, 20);
  const auto found = checkpoints_in(path("all"));
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[1].extra, "step text");
  EXPECT_FALSE(found[3].complete);
  spill(path("all/checkpoint.json"), "{}");
  EXPECT_THAT(error_of([&] { load_checkpoint(path("all")); }),
              HasSubstr("is a checkpoint, and has others, such as 'step-00000020': load one by"));
  std::filesystem::remove(path("all/checkpoint.json"));
  remove_checkpoint(series_path(path("all"), 20), path("all"));
  EXPECT_FALSE(std::filesystem::exists(series_path(path("all"), 20)));
  EXPECT_EQ(load_checkpoint(path("all")).facts().step, 7);
}

TEST_F(CheckpointTest, StaysReadableWhileItIsOpen) {
  const std::string all = path("all"), one = series_path(all, 1);
  save_checkpoint(one, facts_of_step(1), small_tensors(1), 1, all);
  const auto loaded = load_checkpoint(one);
  save_checkpoint(one, facts_of_step(2), small_tensors(2), 1, all);
  EXPECT_TRUE(holds(loaded, small_tensors(1)));
  remove_checkpoint(one, all);
  EXPECT_FALSE(std::filesystem::exists(one));
  EXPECT_TRUE(holds(loaded, small_tensors(1)));
}

TEST_F(CheckpointTest, ReplacesWhatAnotherRankOfAFailedJobHasLeft) {
  std::filesystem::create_directories(path("ck"));
  begin_folder("ck", "4");
  save_checkpoint(path("ck"), facts_of_step(3), small_tensors(3));
  EXPECT_EQ(load_checkpoint(path("ck")).facts().step, 3);
  EXPECT_FALSE(std::filesystem::exists(path("ck/4")));
}

TEST_F(CheckpointTest, RefusesToReplaceAnythingElse) {
  auto save = [&] { save_checkpoint(path("ck"), {}, small_tensors(0)); };
  std::filesystem::create_directory(path("ck"));
  spill(path("ck/notes.txt"), "mine");
  EXPECT_THAT(error_of(save), HasSubstr("the directory holds 'notes.txt', which is not of a"));
  std::filesystem::create_directory(path("ck/7"));
  std::filesystem::rename(path("ck/notes.txt"), path("ck/7/notes.txt"));
  EXPECT_THAT(error_of(save), HasSubstr("is not a checkpoint; save under another name"));
  spill(path("ck/checkpoint.json"), "{\"format\": \"another\"}");
  EXPECT_THAT(error_of(save), HasSubstr("is not a checkpoint; save under another name"));
  EXPECT_EQ(slurp(path("ck/7/notes.txt")), "mine");
  std::filesystem::remove_all(path("ck"));
  spill(path("ck"), "a file");
  EXPECT_THAT(error_of(save), HasSubstr("there is something else of that name"));
  EXPECT_EQ(slurp(path("ck")), "a file");
}

TEST_F(CheckpointTest, ReadsEachTensorOnce) {
  std::multiset<std::string> read;
  std::vector<NamedTensor> tensors;
  for (NamedTensor& t : every_type())
    tensors.push_back({t.first, {t.second.type, [&read, t] {
                                   read.insert(t.first);
                                   return t.second.read();
                                 }}});
  save_checkpoint(path("ck"), {}, tensors);
  std::multiset<std::string> expected;
  for (const NamedTensor& t : tensors)
    if (t.second.type.elements() > 0) expected.insert(t.first);
  EXPECT_EQ(read, expected);
}

TEST_F(CheckpointTest, RefusesWhatItCouldNotLoad) {
  HostTensor one = filled({ORR_F32, {2}}, 1);
  HostTensor lame = one;
  lame.type.dims = {3};
  auto refused = [&](std::vector<NamedTensor> tensors, const std::string& extra = "") {
    std::string message = error_of([&] { save_checkpoint(path("ck"), {0, 0, 0, extra}, tensors); });
    EXPECT_FALSE(std::filesystem::exists(path("ck")));
    EXPECT_EQ(leftovers(), 0);
    return message;
  };
  EXPECT_THAT(refused({{"", one}}), HasSubstr("cannot hold a tensor named ''"));
  EXPECT_THAT(refused({{"__metadata__", one}}), HasSubstr("rename it"));
  EXPECT_THAT(refused({{"\xff", one}}), HasSubstr("the name is not UTF-8; rename it"));
  EXPECT_THAT(refused({{"w", lame}}), HasSubstr("holds 8 bytes instead of the 12 of f32[3]"));
  EXPECT_THAT(refused({{"w", one}}, "\xff"), HasSubstr("extra text must be UTF-8"));
}

TEST_F(CheckpointTest, NamesWhatIsMissing) {
  auto load = [&] { load_checkpoint(path("ck")); };
  EXPECT_THAT(error_of(load), HasSubstr("cannot be opened: No such file or directory; check the"));
  save_checkpoint(path("ck"), {}, small_tensors(0));
  for (const std::string& file : {kFile, std::string("checkpoint.json")}) {
    std::filesystem::rename(path("ck/") + file, path("away"));
    EXPECT_EQ(error_of(load), "checkpoint '" + path("ck") + "': " + file +
                                  " is missing; restore it from a copy or check the path");
    std::filesystem::create_symlink(path("away"), path("ck/") + file);
    EXPECT_THAT(error_of(load), HasSubstr("not a symbolic link"));
    std::filesystem::remove(path("ck/") + file);
    ASSERT_EQ(::mkfifo((path("ck/") + file).c_str(), 0600), 0);
    EXPECT_THAT(error_of(load), HasSubstr("is not a regular file"));
    std::filesystem::remove(path("ck/") + file);
    std::filesystem::rename(path("away"), path("ck/") + file);
  }
  load();
}

TEST_F(CheckpointTest, NamesAnotherVersionAndFormat) {
  save_checkpoint(path("ck"), {}, small_tensors(0));
  std::string text = slurp(path("ck/checkpoint.json"));
  auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    spill(path("ck/checkpoint.json"), changed);
    return error_of([&] { load_checkpoint(path("ck")); });
  };
  EXPECT_THAT(with("\"version\": 3", "\"version\": 2"),
              HasSubstr("checkpoint.json: version 2 cannot be read, only 3; load it with"));
  EXPECT_THAT(with(text, "{\"format\": \"zip\"}"),
              HasSubstr("format is not \"orrery-checkpoint\""));
  EXPECT_THAT(with("\"step\": 0", "\"step\": 1"), HasSubstr("checkpoint.json was altered"));
  EXPECT_THAT(with(text, "[1"), HasSubstr("checkpoint.json is not a JSON object"));
}

}  // namespace
}  // namespace orrery
