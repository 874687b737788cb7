// SPDX-License-Identifier: Apache-2.0
//
// A test of the judge: a function that looks at one plugin in a process of its own and throws what
// it finds.
#pragma once

#include <fmt/format.h>
#include <orrery/plugin.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace orrery::judge {

// The plugin on trial. `seed` is the only source of random choices.
struct Subject {
  std::filesystem::path path;
  orr_plugin descriptor{};
  uint64_t seed = 1;
  std::vector<std::string> script = {};  // and its key=value words; empty: none was given
  std::vector<std::string> file = {};    // of data, and options=values; likewise

  // A strategy in Lua: `path` is its file, and there is no descriptor.
  bool is_lua() const { return path.extension() == ".lua"; }
  std::string lua_name = {};
  std::string name() const { return is_lua() ? lua_name : descriptor.name; }
};

// A broken contract: the header that says so and its words, what they demand, what came.
struct Fault : std::runtime_error {
  Fault(std::string contract, std::string expected, std::string got)
      : std::runtime_error(contract),
        contract(std::move(contract)),
        expected(std::move(expected)),
        got(std::move(got)) {}
  std::string contract, expected, got;
};

// Nothing to judge here, and why.
struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Test {
  std::string name;  // "comm.collectives"
  int seconds;       // a test that takes longer has failed
  std::function<void(const Subject&)> run;
};

// By kind; plugin_tests are for every kind.
std::vector<Test> plugin_tests();
std::vector<Test> kernel_tests();
std::vector<Test> comm_tests();
std::vector<Test> strategy_tests();
std::vector<Test> observer_tests();
std::vector<Test> device_tests();
std::vector<Test> op_tests();
std::vector<Test> data_tests();
std::vector<Test> boot_tests();

std::vector<Test> lua_strategy_tests();  // of a strategy in Lua
std::vector<Test> script_tests();        // of kernel plugins, if the subject has a script

// Of all kinds that the plugin has.
std::vector<Test> tests_of(const Subject& subject);

// Tests of several ranks start this program as `orrery check FILE --ranks N --body NAME --argument
// WORDS --seed S`, which launches N ranks, `orrery check FILE --body NAME --argument WORDS --seed
// S`.
int start_ranks(const Subject& subject, int ranks, const std::string& body,
                const std::string& argument);
// What one rank does; an Error that it throws is told and becomes its code.
int run_body(const Subject& subject, const std::string& body, const std::string& argument);

}  // namespace orrery::judge
