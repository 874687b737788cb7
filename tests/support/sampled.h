// SPDX-License-Identifier: Apache-2.0
//
// Sweeps over many alike cases, thinned where programs are slow: scripts/sanitize thread looks for
// races, of which a sweep holds the same few in every case.
#ifndef ORRERY_TESTS_SAMPLED_H
#define ORRERY_TESTS_SAMPLED_H

#include <cstdlib>
#include <vector>

// One case of ORRERY_TEST_STRIDE, the first among them; all of them without the variable.
template <class Case>
std::vector<Case> sampled(const std::vector<Case>& all) {
  const char* text = std::getenv("ORRERY_TEST_STRIDE");
  const size_t stride = text ? std::strtoul(text, nullptr, 10) : 1;
  std::vector<Case> some;
  for (size_t i = 0; i < all.size(); i += stride) some.push_back(all[i]);
  return some;
}

#endif
