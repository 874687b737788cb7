// SPDX-License-Identifier: Apache-2.0
//
// A lease, for file systems without locks. Its owner renews a file's time every second from a
// thread, which ends or hangs with the owner. Who sees no renewal for as long as `lease_patience`
// may take it. No clocks are compared.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace orrery {

constexpr std::chrono::seconds lease_renewal{1}, lease_patience{5};

class Lease {
 public:
  // Renews the open file from now on. REQUIRES: it stays open.
  explicit Lease(int fd);
  ~Lease();
  Lease(const Lease&) = delete;

 private:
  void renew(int fd);

  std::mutex mutex_;
  std::condition_variable ending_;
  bool ends_ = false;
  const int owner_;  // the process that has the thread
  std::thread thread_;
};

// Whether the file of that name is renewed or replaced. Returns as soon as it is, or after the
// patience.
bool lease_is_renewed(const std::string& path);

}  // namespace orrery
