// SPDX-License-Identifier: Apache-2.0
#include "conformance/runner.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/process.h"
#include "conformance/lua_strategy.h"
#include "conformance/process.h"
#include "plugin/elf.h"
#include "plugin/loader.h"

namespace orrery::judge {
namespace {

using nlohmann::json;

constexpr const char* alive = "plugin.h: a plugin is part of its host's process";

void say(const json& verdict) {
  const std::string text = verdict.dump();
  if (write(verdict_fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    fail(ORR_FAILED, "cannot say a test's verdict: nobody listens");
}

json verdict_of(const Subject& subject, const Test& test) {
  try {
    test.run(subject);
    return {{"state", "passed"}};
  } catch (const Fault& e) {
    return {
        {"state", "failed"}, {"contract", e.contract}, {"expected", e.expected}, {"got", e.got}};
  } catch (const Skip& e) {
    return {{"state", "skipped"}, {"reason", e.what()}};
  } catch (const Error& e) {
    return {{"state", "failed"},
            {"contract", "types.h: \"NULL is success\""},
            {"expected", "calls that succeed"},
            {"got", fmt::format("an error with code {}: {}", e.code(), e.what())}};
  }
}

const Test& find(const std::vector<Test>& tests, const std::string& name) {
  for (const Test& test : tests)
    if (test.name == name) return test;
  fail(ORR_INVALID, "there is no test '{}' of this plugin", name);
}

}  // namespace

Subject examine(const std::filesystem::path& file, uint64_t seed) {
  if (!std::filesystem::exists(file))
    fail(ORR_INVALID,
         "plugin path {} does not exist; name a .so file, or the .lua file of a strategy",
         file.string());
  const std::filesystem::path path = std::filesystem::canonical(file);
  if (Subject lua{path, {}, seed}; lua.is_lua()) {
    lua.lua_name = said_by_lua(lua).name;
    return lua;
  }
  try {
    check_trusted(path);
    return {path, read_descriptor(path), seed};
  } catch (const Error& e) {
    fail(ORR_FAILED, "plugin {}: file: {}", file.string(), e.what());
  }
}

void run_here(const Subject& subject, const std::string& name) {
  const std::vector<Test> tests = tests_of(subject);
  say(verdict_of(subject, find(tests, name)));
}

Result run_apart(const Subject& subject, const Test& test) {
  std::vector<std::string> words = {
      "check", subject.path.string(), "--seed", std::to_string(subject.seed), "--test", test.name};
  if (!subject.script.empty()) words.push_back("--script");
  words.insert(words.end(), subject.script.begin(), subject.script.end());
  if (!subject.file.empty()) words.push_back("--file");
  words.insert(words.end(), subject.file.begin(), subject.file.end());
  const Ended ended = run_orrery(words, {}, test.seconds);
  Result result{test.name, State::kFailed, ended.seconds, alive, "", "", "", ended.output};
  const json verdict = json::parse(ended.verdict, nullptr, false);
  if (ended.late) {
    result.expected = fmt::format("an end within {} s", test.seconds);
    result.got = "it still ran, and was killed";
  } else if (verdict.is_discarded() || ended.code != 0) {
    result.expected =
        verdict.is_discarded() ? "a test that ends by itself" : "a process that ends in peace";
    result.got = describe_code(ended.code) + (verdict.is_discarded() ? "" : " at its exit");
  }
  if (!result.got.empty()) return result;
  if (verdict["state"] != "failed") {
    result.state = verdict["state"] == "passed" ? State::kPassed : State::kSkipped;
    result.reason = verdict.value("reason", "");
    result.contract = result.output = "";
  } else {
    result.contract = verdict["contract"], result.expected = verdict["expected"],
    result.got = verdict["got"];
  }
  return result;
}

}  // namespace orrery::judge
