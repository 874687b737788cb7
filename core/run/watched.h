// SPDX-License-Identifier: Apache-2.0
//
// What orrery.print and orrery.watch show of a value: a few statistics of each sample, which are
// one more result of the program and are put together after it has run. [main thread]
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "program/program.h"
#include "program/state.h"

namespace orrery {

struct Watched {
  std::string name;   // of what is recorded, "blocks.1.hidden"
  std::string label;  // of what is printed, "gpt.lua:20: GPT.blocks.1: hidden f32[8,64]"
  bool prints = false;
};

// Makes statistics of `x` a result of the program. If another recorded value has the name, a number
// is added to it.
void watch(Program& p, ValueId x, Watched watched);

// Whether the result of this name belongs to a watched value.
bool is_watched(const std::string& output);
// A result in messages: "the second result 'probs'", "what is watched, gpt.lua:20: hidden f32[8],".
std::string title_of_result(const std::string& output);

// Removes the statistics of watched values from `results`; prints those that are to be printed
// behind `when` ("step 3"), and returns those that are to be recorded: "NAME.mean" and so on.
std::map<std::string, double> take_watched(std::vector<std::pair<std::string, HostTensor>>& results,
                                           const std::string& when);

// One line on stdout and for the observers, from rank 0.
void print_line(const std::string& line);

// The statistics of a tensor in words: "mean 0.5, std 0.1, min 0.2, max 0.9; first 0.4 0.6".
std::string statistics_text(const HostTensor& x);

}  // namespace orrery
