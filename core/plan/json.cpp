// SPDX-License-Identifier: Apache-2.0
#include "plan/json.h"

namespace orrery {

Json runs_json(const std::vector<int>& ranks) {
  Json runs = Json::array();
  for (int rank : ranks) {
    if (runs.empty() || runs.back()[1] != rank - 1) runs.push_back({rank, rank});
    runs.back()[1] = rank;
  }
  return runs;
}

}  // namespace orrery
