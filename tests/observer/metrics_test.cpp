// SPDX-License-Identifier: Apache-2.0
//
// The lines of metrics.jsonl, read back as JSON.
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "events.h"

namespace orrery {
namespace {

class Metrics : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = (std::filesystem::temp_directory_path() / "orrery-metrics-XXXXXX").string();
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    dir_ = made;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> all;
    std::ifstream in(dir_ / "metrics.jsonl");
    for (std::string line; std::getline(in, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }

  std::filesystem::path dir_;
  Observer metrics_{"metrics"};
};

TEST_F(Metrics, WritesALineForEachStepAtItsEnd) {
  metrics_.start(0, dir_.string(), false);
  metrics_.begin(10, 99);
  metrics_.metric(1, "loss", 0.1, 100.25);
  metrics_.metric(1, "grad_norm", 2, 100.5);
  metrics_.step_end(1, 101);
  ASSERT_EQ(lines().size(), 1u) << "a line is on disk before the run ends";
  EXPECT_EQ(lines()[0],
            (nlohmann::json{
                {"step", 1}, {"time", 101.0}, {"loss", 0.1}, {"grad_norm", 2}, {"seconds", 0.5}}));
}

TEST_F(Metrics, WritesWhatIsRecordedAfterAStepOnOneLine) {
  metrics_.start(0, dir_.string(), false);
  metrics_.step_end(1, 101);
  metrics_.metric(1, "eval/loss", 3, 102);
  metrics_.metric(1, "eval/accuracy", 0.5, 103);
  metrics_.send(ORR_EVENT_LOG, 0, 0, 104, "told");
  const nlohmann::json both{{"step", 1}, {"time", 103.0}, {"eval/loss", 3}, {"eval/accuracy", 0.5}};
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(lines()[1], both);
  metrics_.metric(1, "again", 1, 105);
  metrics_.metric(1, "again", 2, 106);
  metrics_.metric(7, "own", 3, 107);
  metrics_.stop();
  ASSERT_EQ(lines().size(), 5u) << "a line has a name once, and numbers of one step";
  EXPECT_EQ(lines()[3], (nlohmann::json{{"step", 1}, {"time", 106.0}, {"again", 2}}));
  EXPECT_EQ(lines()[4], (nlohmann::json{{"step", 7}, {"time", 107.0}, {"own", 3}}));
}

TEST_F(Metrics, KeepsAwkwardTagsAndValuesValid) {
  metrics_.start(0, dir_.string(), false);
  metrics_.metric(1, "a \"b\"\\\n", NAN, 0);
  metrics_.stop();
  ASSERT_EQ(lines().size(), 1u);
  EXPECT_TRUE(lines()[0].at("a \"b\"\\\n").is_null());
}

TEST_F(Metrics, AppendsWhenARunContinues) {
  for (int step : {1, 2}) {
    metrics_.start(0, dir_.string(), false);
    metrics_.metric(step, "loss", 1, 0);
    metrics_.stop();
  }
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(lines()[1].at("step"), 2);
}

// As of a process that was killed while it wrote.
TEST_F(Metrics, CutsOffAnUnfinishedLine) {
  for (const std::string left : {"{\"step\":1,\"loss\":1}\n{\"step\":2,\"lo", "{\"st", ""}) {
    std::ofstream(dir_ / "metrics.jsonl") << left;
    metrics_.start(0, dir_.string(), false);
    metrics_.metric(2, "loss", 1, 0);
    metrics_.stop();
    ASSERT_EQ(lines().size(), left.size() > 9 ? 2u : 1u);
    EXPECT_EQ(lines().back().at("step"), 2);
  }
}

TEST_F(Metrics, CutsOffAnUnfinishedLineOfCsv) {
  std::ofstream(dir_ / "metrics.csv") << "step,time,name,value\n1,0,loss,1\n2,0,lo";
  Observer csv{"csv"};
  csv.start(0, dir_.string(), false);
  csv.metric(2, "loss", 1, 0);
  csv.stop();
  std::ifstream in(dir_ / "metrics.csv");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text, "step,time,name,value\n1,0,loss,1\n2,0,loss,1\n");
}

TEST_F(Metrics, WritesNothingOnOtherRanksOrWithoutDirectory) {
  metrics_.start(1, dir_.string(), false);
  metrics_.metric(1, "loss", 1, 0);
  metrics_.start(0, "", false);
  metrics_.metric(1, "loss", 1, 0);
  EXPECT_TRUE(std::filesystem::is_empty(dir_));
}

TEST_F(Metrics, NamesTheFileThatItCannotOpen) {
  try {
    metrics_.start(0, (dir_ / "nowhere").string(), false);
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(
        std::string(e.what()).find("cannot open " + (dir_ / "nowhere/metrics.jsonl").string()), 0u)
        << e.what();
  }
}

TEST_F(Metrics, WritesNoMoreWhenTheDiskIsFull) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  std::filesystem::create_symlink("/dev/full", dir_ / "metrics.jsonl");
  metrics_.start(0, dir_.string(), false);
  metrics_.step_end(1, 0);
  std::filesystem::remove(dir_ / "metrics.jsonl");
  metrics_.step_end(2, 0);
  metrics_.stop();
  EXPECT_TRUE(std::filesystem::is_empty(dir_));
  metrics_.start(0, dir_.string(), false);
  metrics_.step_end(3, 0);
  EXPECT_EQ(lines().size(), 1u) << "the next run observes again";
}

}  // namespace
}  // namespace orrery
