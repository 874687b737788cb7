// SPDX-License-Identifier: Apache-2.0
//
// All ranks of an axis in one process, op by op: every rank runs up to its next exchange, which is
// then computed from all ranks' values by a plain model. One rank alone is the oracle.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "machine.h"
#include "program/state.h"

namespace program_test {

class Together {
 public:
  // One program a rank, in rank order. States begin with their initial data, zeros without.
  explicit Together(std::vector<Program> ranks);

  // Runs a step on the batch fields; the outputs, which must be the same on all ranks. Fails where
  // the ranks' exchanges differ.
  Named step(const Named& inputs);

  // A state, put together from the parts; copies of the same element must be the same.
  Values state(const std::string& name) const;

  // Elements that each rank has sent, by kind of exchange, counted as sdk/traffic.hpp does.
  const std::map<std::string, double>& sent() const { return sent_; }

 private:
  struct Rank {
    Program program;
    std::map<std::string, orrery::Part> parts;
    std::vector<Values> values;
    std::map<std::string, Values> states;
    std::vector<std::unique_ptr<Machine>> machines;  // by op
    size_t at = 0;
  };

  void begin(Rank& rank, const Named& inputs);
  bool run_to_exchange(Rank& rank);
  void compute(Rank& rank, size_t op);
  void exchange();
  Named finish();

  std::vector<Rank> ranks_;
  std::map<std::string, Type> types_;  // of whole states
  std::map<std::string, double> sent_;
};

}  // namespace program_test
