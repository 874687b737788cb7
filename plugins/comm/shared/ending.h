// SPDX-License-Identifier: Apache-2.0
//
// The end of a world: after a lost peer none of its communicators can be trusted.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

namespace shared {

class Ending {
 public:
  Ending();
  Ending(const Ending&) = delete;
  virtual ~Ending() = default;

  // Ends the world for this reason, here and on the peers, unless it has ended before. [any thread]
  void abort(int32_t code, const std::string& reason);
  // abort, then throws the reason.
  [[noreturn]] void fail(int32_t code, const std::string& reason);
  bool has_ended() const { return ended_; }
  // Throws the reason when the world has ended. [any thread]
  void check_alive() const;
  // Whether the world has ended or this process is about to end for another reason.
  bool failing() const;

 protected:
  // Ends the world here alone; false if it has ended before.
  bool end(int32_t code, const std::string& reason);
  // Tells the peers, as far as that can be done.
  virtual void tell_peers(int32_t code, const std::string& reason) = 0;

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> ended_{false};
  int32_t code_ = 0;
  std::string reason_;
};

}  // namespace shared
