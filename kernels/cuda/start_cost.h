// SPDX-License-Identifier: Apache-2.0
//
// What the start of a program cost that the next run will not pay: told in the log.
#pragma once

#include <chrono>
#include <mutex>

namespace orr_cuda {

using Clock = std::chrono::steady_clock;
inline double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class StartCost {
 public:
  // An expression was compiled; all threads together were at it for so long; a product was
  // measured in so long. [any thread]
  void compiled();
  void compiling(double seconds);
  void measured(double seconds);

  // Logs what there was since the last time, if there was anything. [main thread]
  void tell();

 private:
  std::mutex mutex_;
  int compiled_ = 0, measured_ = 0;
  double compiling_ = 0, measuring_ = 0;
};

StartCost& start_cost();

}  // namespace orr_cuda
