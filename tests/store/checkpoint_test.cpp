// SPDX-License-Identifier: Apache-2.0
//
// What goes in comes out, what is overwritten is a checkpoint, and what is wrong is named.
#include "store/checkpoint.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>

#include "fixture.h"
#include "store/digest.h"

namespace orrery {
namespace {

using testing::HasSubstr;

using Checkpoint = StoreTest;

std::vector<NamedTensor> every_type() {
  std::vector<NamedTensor> tensors;
  for (int32_t dtype : {ORR_F32, ORR_F64, ORR_BF16, ORR_F16, ORR_I32, ORR_I64, ORR_U8, ORR_BOOL})
    for (const Dims& dims :
         {Dims{}, Dims{0}, Dims{3, 0, 2}, Dims{7}, Dims{2, 3, 4, 1, 1, 1, 1, 5}}) {
      std::string name = dtype_name(dtype) + to_string(dims);
      bool parameter = is_real(dtype);
      tensors.push_back({name, parameter, filled({dtype, dims}, static_cast<unsigned>(dtype))});
    }
  return tensors;
}

TEST_F(Checkpoint, KeepsEveryTypeAndFact) {
  CheckpointFacts facts{1234567890123, 7, UINT64_MAX, std::string("a\0\"\\\n\t\x7f é", 11)};
  save_checkpoint(path("ck"), facts, every_type());
  LoadedCheckpoint loaded = load_checkpoint(path("ck"));
  EXPECT_TRUE(holds(loaded, every_type()));
  EXPECT_EQ(loaded.facts.step, facts.step);
  EXPECT_EQ(loaded.facts.microbatches, facts.microbatches);
  EXPECT_EQ(loaded.facts.seed, facts.seed);
  EXPECT_EQ(loaded.facts.extra, facts.extra);
  EXPECT_EQ(leftovers(), 0);
}

TEST_F(Checkpoint, MayHoldNoTensors) {
  save_checkpoint(path("ck"), {}, {});
  EXPECT_TRUE(load_checkpoint(path("ck")).tensors.empty());
}

TEST_F(Checkpoint, KeepsNamesAsTheyAre) {
  std::vector<NamedTensor> tensors;
  for (const char* name : {"../x", "a\"b\\c", "größe", "dtype", "line\nend", " "})
    tensors.push_back({name, true, filled({ORR_U8, {3}}, 1)});
  save_checkpoint(path("ck"), {}, tensors);
  EXPECT_TRUE(holds(load_checkpoint(path("ck")), tensors));
}

TEST_F(Checkpoint, SameContentsMakeTheSameFiles) {
  auto tensors = every_type();
  save_checkpoint(path("a"), facts_of_step(1), tensors);
  std::reverse(tensors.begin(), tensors.end());
  save_checkpoint(path("b"), facts_of_step(1), tensors);
  for (const char* file : {"model.1.safetensors", "optimizer.1.safetensors", "checkpoint.json"})
    EXPECT_EQ(slurp(path("a/") + file), slurp(path("b/") + file)) << file;
}

TEST_F(Checkpoint, ReplacesACheckpointOrAnEmptyDirectory) {
  std::filesystem::create_directory(path("ck"));
  for (unsigned i = 0; i < 3; ++i) {
    save_checkpoint(path("ck"), facts_of_step(i), small_tensors(i));
    EXPECT_TRUE(holds(load_checkpoint(path("ck")), small_tensors(i)));
    EXPECT_EQ(load_checkpoint(path("ck")).facts.step, i);
  }
  EXPECT_EQ(leftovers(), 0);
}

TEST_F(Checkpoint, SweepsLeftoversMakesParentsAndFollowsALinkToIt) {
  save_checkpoint(path("ck/"), facts_of_step(1), small_tensors(1));
  spill(path("ck/model.7.safetensors"), "half");
  spill(path("ck/checkpoint.json.new"), "half");
  save_checkpoint(path("ck/"), facts_of_step(1), small_tensors(1));
  EXPECT_EQ(leftovers(), 0);
  save_checkpoint(path("new/deep/ck"), facts_of_step(1), small_tensors(1));
  std::filesystem::create_directory_symlink("new/deep/ck", path("latest"));
  save_checkpoint(path("latest"), facts_of_step(2), small_tensors(2));
  EXPECT_TRUE(std::filesystem::is_symlink(path("latest")));
  EXPECT_TRUE(holds(load_checkpoint(path("new/deep/ck")), small_tensors(2)));
}

// As the first version wrote it, with fixed names.
TEST_F(Checkpoint, ReadsAndReplacesTheFirstVersion) {
  save_checkpoint(path("ck"), facts_of_step(1), small_tensors(1));
  std::string text = slurp(path("ck/checkpoint.json"));
  for (const char* kind : {"model", "optimizer"}) {
    const std::string fixed = fmt::format("{}.safetensors", kind),
                      numbered = fmt::format("{}.1.safetensors", kind);
    std::filesystem::rename(path("ck/" + numbered), path("ck/" + fixed));
    text.replace(text.find(numbered), numbered.size(), fixed);
  }
  text.replace(text.find("\"version\": 2"), 12, "\"version\": 1");
  text.resize(text.rfind(",\n  \"xxh3_64\""));
  Digest digest;
  digest.add(text.data(), text.size());
  spill(path("ck/checkpoint.json"),
        fmt::format("{},\n  \"xxh3_64\": \"{}\"\n}}\n", text, digest.text()));
  EXPECT_TRUE(holds(load_checkpoint(path("ck")), small_tensors(1)));
  save_checkpoint(path("ck"), facts_of_step(2), small_tensors(2));
  EXPECT_TRUE(holds(load_checkpoint(path("ck")), small_tensors(2)));
  EXPECT_EQ(leftovers(), 0);
}

TEST_F(Checkpoint, HasOneWriter) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t other = ::fork();
  if (other == 0) {
    save_checkpoint(path("ck"), facts_of_step(2), small_tensors(2));
    ::close(ready[1]);
    for (;;) ::pause();
  }
  ::close(ready[1]);
  char byte;
  EXPECT_EQ(::read(ready[0], &byte, 1), 0);
  ::close(ready[0]);
  auto save = [&] { save_checkpoint(path("ck"), facts_of_step(3), small_tensors(3)); };
  EXPECT_THAT(error_of(save), HasSubstr(fmt::format("process {} on host", other)));
  EXPECT_EQ(load_checkpoint(path("ck")).facts.step, 2);
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  save();
  EXPECT_EQ(load_checkpoint(path("ck")).facts.step, 3);
  // As by a host whose locks this one does not see.
  spill(path("ck/checkpoint.lock"), "process 4711\nhost far\nboot b\nstart 1\n");
  EXPECT_THAT(error_of(save), HasSubstr("process 4711 on host far has begun to save there, too"));
  EXPECT_EQ(load_checkpoint(path("ck")).facts.step, 3);
}

TEST_F(Checkpoint, RefusesToReplaceAnythingElse) {
  auto save = [&] { save_checkpoint(path("ck"), {}, small_tensors(0)); };
  std::filesystem::create_directory(path("ck"));
  spill(path("ck/notes.txt"), "mine");
  EXPECT_THAT(error_of(save), HasSubstr("the directory holds 'notes.txt', which is not of a"));
  std::filesystem::rename(path("ck/notes.txt"), path("ck/model.safetensors"));
  EXPECT_THAT(error_of(save), HasSubstr("is not a checkpoint; save under another name"));
  spill(path("ck/checkpoint.json"), "{\"format\": \"another\"}");
  EXPECT_THAT(error_of(save), HasSubstr("is not a checkpoint; save under another name"));
  EXPECT_EQ(slurp(path("ck/model.safetensors")), "mine");
  std::filesystem::remove_all(path("ck"));
  spill(path("ck"), "a file");
  EXPECT_THAT(error_of(save), HasSubstr("there is something else of that name"));
  EXPECT_EQ(slurp(path("ck")), "a file");
}

TEST_F(Checkpoint, ReadsOneTensorAtATimeInItsOrder) {
  std::vector<std::string> read;
  std::vector<NamedTensor> tensors;
  for (NamedTensor& t : every_type())
    tensors.push_back({t.name, t.parameter, {t.tensor.type, [&read, t] {
                                               read.push_back(t.name);
                                               return t.tensor.read();
                                             }}});
  save_checkpoint(path("ck"), {}, tensors);
  std::vector<std::string> expected;
  sort_for_checkpoint(tensors);
  for (const NamedTensor& t : tensors) expected.push_back(t.name);
  EXPECT_EQ(read, expected);
}

TEST_F(Checkpoint, RefusesWhatItCouldNotLoad) {
  HostTensor one = filled({ORR_F32, {2}}, 1);
  HostTensor lame = one;
  lame.type.dims = {3};
  auto refused = [&](std::vector<NamedTensor> tensors, const std::string& extra = "") {
    std::string message = error_of([&] { save_checkpoint(path("ck"), {0, 0, 0, extra}, tensors); });
    EXPECT_FALSE(std::filesystem::exists(path("ck")));
    EXPECT_EQ(leftovers(), 0);
    return message;
  };
  EXPECT_THAT(refused({{"w", true, one}, {"w", false, one}}), HasSubstr("are named 'w'"));
  EXPECT_THAT(refused({{"", true, one}}), HasSubstr("cannot hold a tensor named ''"));
  EXPECT_THAT(refused({{"__metadata__", true, one}}), HasSubstr("rename it"));
  EXPECT_THAT(refused({{"\xff", true, one}}), HasSubstr("the name is not UTF-8; rename it"));
  EXPECT_THAT(refused({{"w", true, lame}}), HasSubstr("holds 8 bytes instead of the 12 of f32[3]"));
  EXPECT_THAT(refused({{"w", true, one}}, "\xff"), HasSubstr("extra text must be UTF-8"));
}

TEST_F(Checkpoint, NamesWhatIsMissing) {
  auto load = [&] { load_checkpoint(path("ck")); };
  EXPECT_THAT(error_of(load), HasSubstr("cannot be opened: No such file or directory; check the"));
  save_checkpoint(path("ck"), {}, small_tensors(0));
  for (const char* file : {"model.1.safetensors", "optimizer.1.safetensors", "checkpoint.json"}) {
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

TEST_F(Checkpoint, NamesAnotherVersionAndFormat) {
  save_checkpoint(path("ck"), {}, small_tensors(0));
  std::string text = slurp(path("ck/checkpoint.json"));
  auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    spill(path("ck/checkpoint.json"), changed);
    return error_of([&] { load_checkpoint(path("ck")); });
  };
  EXPECT_THAT(with("\"version\": 2", "\"version\": 3"),
              HasSubstr("checkpoint.json: version 3 cannot be read, only 1 and 2; load it with"));
  EXPECT_THAT(with("orrery-checkpoint", "zip"), HasSubstr("format is not \"orrery-checkpoint\""));
  EXPECT_THAT(with("\"step\": 0", "\"step\": 1"), HasSubstr("checkpoint.json was altered"));
  EXPECT_THAT(with(text, "[1"), HasSubstr("checkpoint.json is not a JSON object"));
}

}  // namespace
}  // namespace orrery
