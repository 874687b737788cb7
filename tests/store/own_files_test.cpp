// SPDX-License-Identifier: Apache-2.0
//
// What is somebody's stays as it is, wherever it lies around checkpoints: every kind of save, every
// sweep and every removal is done beside it, and a listing with all contents is the same after it.
#include "store/own_files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <map>

#include "fixture.h"
#include "store/weights.h"
#include "store/writer_lock.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kShard = "shard-00001-model-00001-of-00001.safetensors";

// Path -> kind, mode, owner, and content or target.
using Listing = std::map<std::string, std::string>;

std::string entry_of(const fs::path& path) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return "none";
  std::string text = fmt::format("{:o} {} ", facts.st_mode, facts.st_uid);
  if (S_ISLNK(facts.st_mode)) return text + fs::read_symlink(path).string();
  return S_ISREG(facts.st_mode) ? text + slurp(path) : text;
}

class OthersFiles : public StoreTest {
 protected:
  ~OthersFiles() override {
    for (const auto& entry : fs::recursive_directory_iterator(path("")))
      if (entry.is_directory() && !entry.is_symlink())
        fs::permissions(entry.path(), fs::perms::owner_all);
  }

  // Something of somebody, which the test is about.
  void theirs(const std::string& name) { listed_[path(name)] = entry_of(path(name)); }
  void file(const std::string& name, const std::string& text = "mine") {
    fs::create_directories(fs::path(path(name)).parent_path());
    spill(path(name), text);
    theirs(name);
  }
  void link(const std::string& name, const std::string& to) {
    fs::create_directories(fs::path(path(name)).parent_path());
    fs::create_symlink(path(to), path(name));
    theirs(name);
  }
  void close(const std::string& name) {
    fs::permissions(path(name), fs::perms::owner_read | fs::perms::owner_exec);
  }

  void save(int64_t step) { save_checkpoint(path("ck"), facts_of_step(step), small_tensors(1), 2); }
  // As run:checkpoints does with keep.
  void save_step(int64_t step, const std::vector<int64_t>& gone = {}) {
    const std::string all = path("all");
    save_checkpoint(series_path(all, step), facts_of_step(step), small_tensors(1), 2, all);
    for (int64_t old : gone) remove_checkpoint(series_path(all, old), all);
  }
  void fail_to_save(const std::string& directory, const std::string& series = "") {
    CheckpointWriter writer(directory, series);
    write_shard(writer.folder(), 0, {});
    spill(writer.folder() + "/" + kShard, "half");
  }

  void expect_unchanged() {
    for (const auto& [name, before] : listed_) EXPECT_EQ(entry_of(name), before) << name;
    EXPECT_GT(listed_.size(), 0u);
  }

 private:
  Listing listed_;
};

TEST_F(OthersFiles, StayBesideACheckpointThatIsReplaced) {
  file("precious/thesis.tex");
  file("precious/" + kShard);
  save(1);
  file("ck/2026/notes.txt");
  file("ck/5/" + kShard, "of another program");
  fs::create_directory(path("ck/11")), theirs("ck/11");
  link("ck/7", "precious");
  link("ck/9", "nowhere");
  fs::copy(path("ck/1"), path("ck/20"), fs::copy_options::recursive);  // a copy by hand
  for (const auto& entry : fs::directory_iterator(path("ck/20")))
    theirs("ck/20/" + entry.path().filename().string());
  for (int64_t step = 2; step < 5; ++step) {
    save(step);
    EXPECT_EQ(load_checkpoint(path("ck")).facts().step, step);
    fail_to_save(path("ck"));
    EXPECT_EQ(load_checkpoint(path("ck")).facts().step, step);
    expect_unchanged();
  }
  EXPECT_FALSE(fs::exists(path("ck/1")));
}

TEST_F(OthersFiles, StayInADirectoryThatSomebodyHasPrepared) {
  file("precious/thesis.tex");
  for (const char* manifest : {"", "{\"format\": \"orrery-checkpoint\"", "sealed"}) {
    SCOPED_TRACE(manifest);
    fs::remove_all(path("ck"));
    save(1);
    if (std::string(manifest) != "sealed") {
      fs::remove_all(path("ck/1"));
      spill(path("ck/checkpoint.json"), manifest);
      if (!*manifest) fs::remove(path("ck/checkpoint.json"));
    } else {  // the folder that its manifest names is a link
      fs::remove_all(path("ck/1"));
      fs::create_symlink(path("precious"), path("ck/1"));
    }
    fs::create_symlink(path("precious"), path("ck/7"));
    save(2);
    EXPECT_EQ(load_checkpoint(path("ck")).facts().step, 2);
    theirs("ck/7");
    save(3);
    EXPECT_EQ(load_checkpoint(path("ck")).facts().step, 3);
    expect_unchanged();
    EXPECT_FALSE(fs::is_symlink(path("ck/1")));
  }
}

TEST_F(OthersFiles, StayInASeries) {
  save_checkpoint(path("archive/best"), facts_of_step(10), small_tensors(1));
  drop_writer_lock(path("archive/best"));
  for (const auto& entry : fs::recursive_directory_iterator(path("archive")))
    theirs(entry.path().string().substr(path("").size()));
  fs::create_directory(path("all"));
  fs::create_symlink(path("archive/best"), path("all/step-00000010"));
  fs::create_symlink(path("archive/best"), path("all/step-00000050"));
  file("all/step-00000099");
  file("all/step-00000030/notes.txt");
  file("all/step-00000040/2/" + kShard, "of another program");
  file("all/README");
  EXPECT_EQ(checkpoints_in(path("all")).size(), 4u);  // what is no directory is none
  testing::internal::CaptureStderr();
  save_step(20, {10, 30, 40, 99});
  file("all/step-00000020/README");
  fs::copy(path("all/step-00000020/README"), path("all/step-00000020/1/README"));
  theirs("all/step-00000020/1/README");
  save_step(50, {20});
  save_step(60, {20, 30, 40, 99});
  const std::string told = testing::internal::GetCapturedStderr();
  for (const char* said :
       {"step-00000030' is not needed any more and stays: it holds 'notes.txt'",
        "step-00000040' is not needed any more and stays: it holds '2', which is not of a check",
        "step-00000099'", "step-00000050' was a link: the new one takes its place",
        "step-00000020/1' is not needed any more and stays: it holds 'README'"})
    EXPECT_THAT(told, HasSubstr(said));
  EXPECT_FALSE(fs::exists(fs::symlink_status(path("all/step-00000010"))));  // the link
  EXPECT_FALSE(fs::exists(path("all/step-00000020/checkpoint.json")));
  EXPECT_FALSE(fs::exists(path("all/step-00000020/1/" + kShard)));
  EXPECT_EQ(load_checkpoint(path("all")).facts().step, 60);
  EXPECT_FALSE(fs::is_symlink(path("all/step-00000050")));
  fail_to_save(series_path(path("all"), 30), path("all"));
  save_step(40);  // beside theirs
  EXPECT_EQ(load_checkpoint(path("all/step-00000040")).facts().step, 40);
  expect_unchanged();
  EXPECT_EQ(load_checkpoint(path("archive/best")).facts().step, 10);
}

TEST_F(OthersFiles, AreNotTakenForThoseOfADeadWriter) {
  save(1);
  file("ck/checkpoint.json.new", "a plan for a new one");
  EXPECT_THAT(error_of([&] { save(2); }), HasSubstr("holds 'checkpoint.json.new', which is not"));
  expect_unchanged();
  fs::remove(path("ck/checkpoint.json.new"));
  drop_writer_lock(path("ck"));
  spill(path("ck/checkpoint.lock"), "my list of locks");
  EXPECT_THAT(error_of([&] { save(2); }), HasSubstr("checkpoint.lock holds something else"));
  EXPECT_EQ(slurp(path("ck/checkpoint.lock")), "my list of locks");
  fs::create_directory(path("empty"));  // somebody's, though nothing is in it
  fail_to_save(path("empty"));
  EXPECT_TRUE(fs::exists(path("empty")));
}

TEST_F(OthersFiles, StayBesideFilesOfWeights) {
  const std::vector<std::pair<std::string, HostTensor>> some = {{"w", filled({ORR_F32, {4}}, 1)}};
  file("w.safetensors.unfinished");
  link("x.safetensors.unfinished", "w.safetensors.unfinished");
  for (const char* name : {"w.safetensors", "x.safetensors"}) {
    for (int i = 0; i < 2; ++i) {
      WeightsWriter writer(path(name), false);
      writer.add(path(name), some), writer.finish();
    }
  }
  expect_unchanged();
}

// Removal fails: the checkpoint is complete, a line says what stays, and nothing of it changes.
TEST_F(OthersFiles, AndClosedDirectoriesAreNoErrors) {
  const std::string root = fs::path(path("x")).parent_path();
  ASSERT_EQ(as_user(root,
                    [&] {
                      save_step(1), save_step(2), save_step(3), save(1);
                      close("all/step-00000001"), close("all/step-00000002/1"), close("ck/1");
                    }),
            "");
  for (const char* name : {"all/step-00000001/checkpoint.json", "ck/1/.orrery-folder"})
    theirs(name);
  theirs("all/step-00000002/1/" + kShard);
  testing::internal::CaptureStderr();
  EXPECT_EQ(as_user(root, [&] { save_step(4, {1, 2, 3}), save_step(5), save(2), save(3); }), "");
  const std::string told = testing::internal::GetCapturedStderr();
  for (const char* said : {"step-00000001/checkpoint.json' is not needed", "step-00000002/1/shard-",
                           "/ck/1/shard-", "stays: Permission denied"})
    EXPECT_THAT(told, HasSubstr(said));
  expect_unchanged();
  EXPECT_EQ(load_checkpoint(path("ck")).facts().step, 3);
  EXPECT_EQ(load_checkpoint(path("all")).facts().step, 5);
  EXPECT_FALSE(fs::exists(path("all/step-00000003")));
}

TEST_F(OthersFiles, OfAnotherUserAreNoErrors) {
  if (::getuid() != 0) GTEST_SKIP() << "only root has files of two users";
  const std::string root = fs::path(path("x")).parent_path();
  fs::create_directory(path("all"));
  file("all/step-00000001/1/" + kShard);
  file("all/step-00000002/checkpoint.json", "{\n  \"format\": \"orrery-checkpoint\"");
  save_step(3), drop_writer_lock(path("all"));
  for (const auto& entry : fs::recursive_directory_iterator(path("all/step-00000003")))
    theirs(entry.path().string().substr(path("").size()));
  ASSERT_EQ(::chmod(path("all").c_str(), 0777), 0);
  EXPECT_EQ(as_user(root, [&] { save_step(4, {1, 2, 3}), save_step(5, {1, 2, 3, 4}); }), "");
  expect_unchanged();
  EXPECT_EQ(load_checkpoint(path("all")).facts().step, 5);
  EXPECT_FALSE(fs::exists(path("all/step-00000004")));
}

}  // namespace
}  // namespace orrery
