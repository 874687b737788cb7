// SPDX-License-Identifier: Apache-2.0
//
// The stdout or stderr of a launcher. Writing never blocks: what a reader that has stopped, such as
// a paused `less`, does not take waits here, and what ranks print waits in their own pipes.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace orrery {

class Outlet {
 public:
  explicit Outlet(int fd);
  ~Outlet();
  Outlet(const Outlet&) = delete;

  // Whether more may be added now. Who adds more nevertheless makes it longer.
  bool has_room() const { return hurries_ || text_.size() < 64 << 10; }
  // Whether the ranks must not wait for the reader, because they are about to end: there is room
  // for all, and what is more than 1 MiB is lost.
  void hurry(bool on) { hurries_ = on; }
  void add(std::string_view text);
  // The same, of what is never lost.
  void add_line(const std::string& line) { text_ += line + "\n"; }
  // Writes as much as the reader takes now. Text that cannot be written is gone, as it is when
  // nobody reads any more; SIGPIPE comes as ever.
  void flush();

  bool is_empty() const { return text_.empty(); }
  size_t bytes() const { return text_.size(); }
  size_t lost() const { return lost_; }
  // To be polled for POLLOUT while there is text.
  int fd() const { return fd_; }

  // Whether what this descriptor leads to can stop taking bytes: a pipe or a socket.
  static bool may_stall(int fd);

 private:
  ssize_t write_some(size_t done);
  int fd_;
  bool is_own_ = false, is_socket_ = false, hurries_ = false;
  std::string text_;
  size_t lost_ = 0;
};

}  // namespace orrery
