// SPDX-License-Identifier: Apache-2.0
//
// What a rank does in a test of a backend: plain functions, so that the judge and the tests of this
// repository, which run them under every launcher, share them. A body checks for itself and throws.
#pragma once

#include <string>
#include <vector>

namespace comm_suite {

struct NamedBody {
  const char* name;
  int (*run)(const std::string& backend, const std::string& argument);
};

std::vector<NamedBody> collective_bodies();
std::vector<NamedBody> pair_bodies();
std::vector<NamedBody> concurrent_bodies();
std::vector<NamedBody> failure_bodies();

inline std::vector<NamedBody> all_bodies() {
  std::vector<NamedBody> all;
  for (auto family : {collective_bodies, pair_bodies, concurrent_bodies, failure_bodies})
    for (const NamedBody& body : family()) all.push_back(body);
  return all;
}

}  // namespace comm_suite
