// SPDX-License-Identifier: Apache-2.0
//
// Where the suite runs, unasked: every backend plugin of the registry under every launcher of this
// machine. What does not work together is skipped with the backend's own reason.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "ranks.h"

namespace comm_suite {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double slowness = 4;
#else
constexpr double slowness = 1;
#endif

struct Setting {
  std::string backend, launcher;
  std::string hosts = "";  // "aabb": ranks 0, 1 and 4 believe to be on one host, 2 and 3 on another
  std::string fake = "";   // the library that stands for the one the backend opens
  bool apart = false;      // the kernel lets no rank reach another's memory
  bool bare = false;  // of the backend only sends and receives are used: the core composes the rest
};
std::ostream& operator<<(std::ostream& out, const Setting& s);

// All pairs, and `local` between pretended hosts. `null` is left out: it moves nothing,
// by design. A backend over a fake of its library is one more, and named so.
std::vector<Setting> settings();
// "" if the backend works under the launcher here, else why not. Asks one rank, once.
std::string why_not(const Setting& s);
// Whether our own launcher starts this backend's ranks. What does not hang on the launcher is then
// tested there alone.
bool is_main(const Setting& s);

// Runs a body, made with Body below, on n ranks of the setting.
ranks::Outcome run(const Setting& s, int n, const std::string& body,
                   const std::string& argument = "", const std::vector<std::string>& env = {});

// A body gets the backend, then its argument.
struct Body {
  Body(const char* name, int (*run)(const std::string& backend, const std::string& argument));
};

// A test of one setting, and its name in the report.
class Everywhere : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
};

// What hangs on the backend, not on who starts its ranks: under its main launchers only.
class OnMain : public Everywhere {
 protected:
  void SetUp() override {
    Everywhere::SetUp();
    if (!IsSkipped() && !is_main(GetParam()))
      GTEST_SKIP() << "the same code as under our own launcher";
  }
  // Under a launcher that ends the job with its first failing rank, the others may not come to
  // speak.
  bool all_speak() const { return GetParam().launcher == "orrery"; }
  int speakers(int n) const { return all_speak() ? n : 1; }
  // The longest wait of an operation. A foreign launcher may need longer than that to start the
  // ranks.
  std::vector<std::string> deadline(const std::string& seconds) const {
    if (all_speak()) return {"ORRERY_DEADLINE=" + seconds};
    return operation_deadline(seconds);
  }
  // That of the operation under test alone: shorter than ranks may need to meet.
  static std::vector<std::string> operation_deadline(const std::string& seconds) {
    return {"ORRERY_DEADLINE=20", "ORRERY_TEST_DEADLINE=" + seconds};
  }
  // Seconds, fewer than any deadline that is not to be waited for; foreign launchers start slowly.
  double patience() const { return all_speak() ? 2 * slowness : 20; }
};
// What `orrery check` runs on a backend among ranks that our launcher starts (tests/check): here it
// is run where the judge does not come.
class BesidesTheJudge : public OnMain {
 protected:
  void SetUp() override;
};

// What survivors say; most of the time somebody waits.
class Failing : public OnMain {};

std::string name_of(const Setting& s);
// Numbers of ranks up to 5 that no other setting has in the same way.
std::vector<int> sizes(const Setting& s, int fewest = 1);

}  // namespace comm_suite
