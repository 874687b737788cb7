// SPDX-License-Identifier: Apache-2.0
//
// Runs independent tasks on all CPUs.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace orrery {

// Returns make(0), ..., make(n - 1), computed on all CPUs. If some throw, all are still run, and
// the error with the lowest index is thrown.
template <class Made, class Make>
std::vector<Made> in_parallel(size_t n, const Make& make) {
  std::vector<Made> made(n);
  std::vector<std::exception_ptr> errors(n);
  auto one = [&](size_t i) {
    try {
      made[i] = make(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> workers;
  for (size_t t = 0; t < std::min<size_t>(n, std::max(1u, std::thread::hardware_concurrency()));
       ++t)
    workers.emplace_back([&] {
      for (size_t i; (i = next++) < n;) one(i);
    });
  workers.clear();
  for (std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
  return made;
}

}  // namespace orrery
