// SPDX-License-Identifier: Apache-2.0
#include "launch/environment.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "launch/store.h"

namespace orrery {
namespace {

World from(std::map<std::string, std::string> variables) {
  return detect([&](const char* name) -> const char* {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const std::map<std::string, std::string>& variables) {
  try {
    from(variables);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ORR_INVALID);
    return e.what();
  }
  return "";
}

TEST(Environment, NothingSetIsAWorldOfOne) {
  const World w = from({});
  EXPECT_EQ(w.size, 1);
  EXPECT_EQ(w.source, "single process");
}

TEST(Environment, ReadsEveryLauncher) {
  World w =
      from({{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_EQ(w.source, "torchrun");
  EXPECT_EQ(w.rank, 3);
  EXPECT_EQ(w.local_rank, 1);
  EXPECT_EQ(w.local_size, 2);
  EXPECT_FALSE(w.launcher_is_mute);
  w = from({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(w.source, "Open MPI");
  EXPECT_TRUE(w.launcher_is_mute);
  w = from(
      {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "2"}, {"MPI_LOCALRANKID", "1"}});
  EXPECT_EQ(w.source, "hydra");
  EXPECT_EQ(w.local_size, 2);
  EXPECT_TRUE(w.launcher_is_mute);
}

TEST(Environment, SlurmNeedsAStep) {
  std::map<std::string, std::string> batch{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};
  EXPECT_EQ(from(batch).size, 1);
  batch["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(from(batch).size, 4);
  EXPECT_EQ(from(batch).local_size, 4);
  EXPECT_FALSE(from(batch).launcher_is_mute);
  batch["SLURM_STEP_NUM_NODES"] = "2";
  batch["SLURM_STEP_TASKS_PER_NODE"] = "2(x2)";
  EXPECT_EQ(from(batch).local_size, 2);
}

TEST(Environment, SlurmSpeaksForItsOwnPmi) {
  const World w = from({{"SLURM_PROCID", "3"},
                        {"SLURM_NTASKS", "4"},
                        {"SLURM_STEP_ID", "0"},
                        {"SLURM_LOCALID", "1"},
                        {"SLURM_STEP_NUM_NODES", "2"},
                        {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                        {"PMI_RANK", "3"},
                        {"PMI_SIZE", "4"}});
  EXPECT_EQ(w.source, "Slurm");
  EXPECT_EQ(w.local_rank, 1);
  EXPECT_EQ(w.local_size, 2);
}

TEST(Environment, MpirunInsideASlurmStepIsNoConflict) {
  const World w = from({{"SLURM_PROCID", "0"},
                        {"SLURM_NTASKS", "1"},
                        {"SLURM_STEP_ID", "0"},
                        {"OMPI_COMM_WORLD_RANK", "1"},
                        {"OMPI_COMM_WORLD_SIZE", "2"}});
  EXPECT_EQ(w.source, "Open MPI");
  EXPECT_EQ(w.size, 2);
}

TEST(Environment, OwnVariablesComeFirstAndMayRepeatTorchruns) {
  const World w =
      from({{"ORRERY_RANK", "1"}, {"ORRERY_WORLD_SIZE", "2"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}});
  EXPECT_EQ(w.source, "orrery");
}

TEST(Environment, RefusalsNameTheVariables) {
  const std::string half = refusal({{"RANK", "1"}});
  EXPECT_NE(half.find("RANK is set but WORLD_SIZE is not"), std::string::npos) << half;
  const std::string conflict =
      refusal({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
  EXPECT_NE(
      conflict.find("RANK=1 of WORLD_SIZE=2 (torchrun), but PMI_RANK=0 of PMI_SIZE=2 (hydra)"),
      std::string::npos)
      << conflict;
  EXPECT_NE(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}).find("outside"), std::string::npos);
  EXPECT_NE(refusal({{"RANK", "x"}, {"WORLD_SIZE", "2"}}).find("RANK='x'"), std::string::npos);
}

TEST(Environment, JobsAreNamedByTheirLauncher) {
  EXPECT_EQ(from({}).job, "");
  EXPECT_EQ(
      from({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "77"}})
          .job,
      "Open MPI 77");
  const std::string torchrun = from({{"RANK", "1"},
                                     {"WORLD_SIZE", "2"},
                                     {"MASTER_ADDR", "127.0.0.1"},
                                     {"MASTER_PORT", "29500"},
                                     {"TORCHELASTIC_RUN_ID", "r"}})
                                   .job;
  EXPECT_EQ(torchrun, "torchrun 127.0.0.1 29500 r");
  EXPECT_EQ(from({{"SLURM_PROCID", "0"},
                  {"SLURM_NTASKS", "4"},
                  {"SLURM_STEP_ID", "3"},
                  {"SLURM_JOB_ID", "812"}})
                .job,
            "Slurm 812 3");
  EXPECT_EQ(from({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).job, "");
  EXPECT_TRUE(from({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).job.starts_with("hydra process "));
}

TEST(Environment, RankZeroIsWhereItsLauncherSays) {
  std::map<std::string, std::string> slurm{{"SLURM_PROCID", "3"},
                                           {"SLURM_NTASKS", "4"},
                                           {"SLURM_STEP_ID", "0"},
                                           {"SLURM_JOB_ID", "120812"}};
  const auto first_of = [&](const char* nodes) {
    slurm["SLURM_STEP_NODELIST"] = nodes;
    return from(slurm).address;
  };
  EXPECT_EQ(first_of("n[07-12,20],m3"), "n07");
  EXPECT_EQ(first_of("n[20,22]-ib,m3"), "n20-ib");
  EXPECT_EQ(first_of("m3,n[07-12]"), "m3");
  EXPECT_EQ(first_of("m3"), "m3");
  EXPECT_EQ(from(slurm).port, "15812");
  slurm["MASTER_ADDR"] = "10.0.0.1";
  slurm["MASTER_PORT"] = "29500";
  EXPECT_EQ(from(slurm).address, "10.0.0.1");
  EXPECT_EQ(from(slurm).port, "29500");
  EXPECT_EQ(from({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).address, "");
}

std::string why_no_store(World w) {
  auto store = Store::open(w);
  try {
    store->put("key", "value");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ORR_UNAVAILABLE);
    return e.what();
  }
  return "";
}

TEST(Environment, SeveralHostsWithoutAPlaceOrATokenAreToldWhatTheyNeed) {
  World w;
  w.size = 4, w.local_size = 2;
  w.source = "Open MPI";
  EXPECT_NE(why_no_store(w).find(
                "Open MPI has put 2 of 4 ranks on this host, and nothing says where they meet"),
            std::string::npos);
  w.address = "10.0.0.1", w.port = "29500";
  EXPECT_NE(why_no_store(w).find("give all ranks the same ORRERY_TOKEN"), std::string::npos);
}

TEST(Environment, AWorldWithoutAJobSaysHowToStartIt) {
  World w;
  w.size = w.local_size = 4;
  w.source = "torchrun";
  try {
    Store::open(w);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ORR_UNAVAILABLE);
    EXPECT_NE(std::string(e.what()).find("MASTER_PORT"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("orrery run -n 4"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace orrery
