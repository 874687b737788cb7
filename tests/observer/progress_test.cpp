// SPDX-License-Identifier: Apache-2.0
//
// What a person sees of a run.
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "events.h"

namespace orrery {
namespace {

using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

TEST(Progress, RedrawsOneLineOnATerminal) {
  CaptureStderr();
  Observer progress("progress");
  progress.start(0, "", true);
  progress.begin(300, 1000);
  progress.metric(1, "loss", 2.5, 1001);
  progress.metric(1, "grad_norm", 9, 1001);
  progress.step_end(1, 1001);
  progress.step_end(2, 1001.05);  // too soon to redraw
  progress.step_end(3, 1002);
  progress.send(ORR_EVENT_RUN_END, 0, 0, 1002, "");
  const std::string first =
      "\r\033[Kstep 1/300 [00:01<04:59, 1.00 step/s] loss 2.5000 (mean 2.5000) norm 9";
  const std::string last =
      "\r\033[Kstep 3/300 [00:02<03:18, 1.50 step/s] loss 2.5000 (mean 2.5000) norm 9";
  EXPECT_EQ(GetCapturedStderr(), first + last + last + "\n");
}

TEST(Progress, ShowsTheSpeedOfTheLastStep) {
  CaptureStderr();
  Observer progress("progress");
  progress.start(0, "", true);
  progress.begin(0, 0);
  progress.metric(1, "samples_per_second", 12, 1);
  progress.metric(1, "tokens_per_second", 12340, 1);
  progress.metric(1, "learning_rate", 3e-4, 1);
  progress.metric(1, "mfu", 0.42, 1);
  progress.metric(1, "resident_bytes", 85.06e6, 1);
  progress.step_end(1, 1);
  EXPECT_EQ(GetCapturedStderr(),
            "\r\033[Kstep 1 [00:01, 1.00 step/s, 12.3k tok/s] lr 0.0003 mfu 42% memory 85.1MB");
}

TEST(Progress, SaysHowLongTheRunHasWaitedForData) {
  CaptureStderr();
  Observer progress("progress");
  progress.start(0, "", true);
  progress.begin(0, 0);
  progress.metric(1, "data_seconds", 1, 4);
  progress.step_end(1, 4);
  progress.stop();
  EXPECT_EQ(GetCapturedStderr(), "\r\033[Kstep 1 [00:04, 4.00 s/step] waiting for data 25%" +
                                     std::string("\r\033[Kstep 1 [00:04, 4.00 s/step] "
                                                 "waiting for data 25%\n"));
}

TEST(Progress, ClearsItsLineForTheLog) {
  CaptureStderr();
  Observer progress("progress");
  progress.start(0, "", true);
  progress.begin(0, 0);
  progress.step_end(1, 4000);
  progress.send(ORR_EVENT_LOG, 1, 0, 4000, "a line");
  EXPECT_EQ(GetCapturedStderr(), "\r\033[Kstep 1 [1:06:40, 4000.00 s/step]\r\033[K");
}

TEST(Progress, EndsItsLineOnceAfterAFailure) {
  CaptureStderr();
  Observer progress("progress");
  progress.start(0, "", true);
  progress.begin(10, 0);
  progress.step_end(1, 0.05);
  progress.send(ORR_EVENT_FAILURE, 1, 0, 1, "rank 1 died");
  progress.stop();
  EXPECT_EQ(GetCapturedStderr(), "\r\033[Kstep 1/10 [00:00<00:00, 20.00 step/s]\n");
}

TEST(Progress, IsSilentOnOtherRanks) {
  CaptureStderr();
  Observer progress("progress");
  progress.start(1, "", true);
  progress.begin(10, 0);
  progress.step_end(1, 60);
  progress.send(ORR_EVENT_RUN_END, 0, 0, 61, "");
  EXPECT_EQ(GetCapturedStderr(), "");
}

TEST(Progress, LogsEveryFewSecondsElsewhere) {
  std::ostringstream log;
  auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  spdlog::set_pattern("%v");
  Observer progress("progress");
  progress.start(0, "", false);
  progress.begin(100, 0);
  for (int step = 1; step <= 12; ++step) progress.step_end(step, step);
  progress.stop();
  spdlog::set_default_logger(before);
  EXPECT_EQ(log.str(),
            "step 5/100 [00:05<01:35, 1.00 step/s]\n"
            "step 10/100 [00:10<01:30, 1.00 step/s]\n"
            "step 12/100 [00:12<01:28, 1.00 step/s]\n");
}

}  // namespace
}  // namespace orrery
