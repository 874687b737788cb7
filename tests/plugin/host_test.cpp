// SPDX-License-Identifier: Apache-2.0
//
// Statuses of host/1, as plugins treat them.
#include "plugin/host.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>

#include "base/error.h"

namespace orrery {
namespace {

std::string told(orr_status* status) {
  try {
    check(status, "strategy.mine");
    return "nothing";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Statuses, AlwaysHaveAText) {
  const orr_host& host = host_table();
  EXPECT_EQ(told(host.error(ORR_FAILED, "no room")), "strategy.mine: no room");
  EXPECT_EQ(told(host.error(ORR_FAILED, "")), "strategy.mine: no message");
  EXPECT_EQ(told(host.error(ORR_FAILED, nullptr)), "strategy.mine: no message");
}

TEST(Statuses, ThatTheHostHasNotMadeOrThatAreReleasedAreTold) {
  const orr_host& host = host_table();
  const std::string words =
      "strategy.mine: what came back as a status was not made by the host's `error`, or is "
      "released";
  orr_status* status = host.error(ORR_FAILED, "gone");
  host.error_release(status);
  host.error_release(status);
  EXPECT_EQ(told(status), words);
  EXPECT_EQ(told(reinterpret_cast<orr_status*>(8)), words);
}

TEST(Log, IsOneLineWithoutControlCharacters) {
  std::ostringstream out;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out)));
  spdlog::set_pattern("%v");
  host_table().log(ORR_LOG_WARN, "a\nerror: b\x1b[31m");
  spdlog::set_default_logger(before);
  EXPECT_EQ(out.str(), "a error: b [31m\n");
}

}  // namespace
}  // namespace orrery
