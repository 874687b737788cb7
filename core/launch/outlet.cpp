// SPDX-License-Identifier: Apache-2.0
#include "launch/outlet.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace orrery {

// A pipe or a terminal is opened once more, not to block: O_NONBLOCK on the descriptor that we have
// would be so for all processes that share it. Where it cannot be opened, as one that another user
// has made, writes are as short as a pipe takes them whole.
Outlet::Outlet(int fd) : fd_(fd) {
  struct stat what {};
  if (fstat(fd, &what) != 0) return;
  is_socket_ = S_ISSOCK(what.st_mode);
  if (!S_ISFIFO(what.st_mode) && !isatty(fd)) return;
  const int own = open(fmt::format("/proc/self/fd/{}", fd).c_str(),
                       O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (own < 0) return;
  fd_ = own;
  is_own_ = true;
}

Outlet::~Outlet() {
  if (is_own_) close(fd_);
}

void Outlet::add(std::string_view text) {
  constexpr size_t most = 1 << 20;
  if (hurries_ && text_.size() + text.size() > most)
    lost_ += text.size();
  else
    text_ += text;
}

void Outlet::flush() {
  size_t done = 0;
  while (done < text_.size()) {
    pollfd ready{fd_, POLLOUT, 0};
    if (poll(&ready, 1, 0) <= 0) break;
    const ssize_t n = write_some(done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    done = n > 0 ? done + static_cast<size_t>(n) : text_.size();
  }
  text_.erase(0, done);
}

ssize_t Outlet::write_some(size_t done) {
  const char* from = text_.data() + done;
  const size_t bytes = text_.size() - done;
  if (is_socket_) return send(fd_, from, bytes, MSG_DONTWAIT);
  return write(fd_, from, is_own_ ? bytes : std::min<size_t>(bytes, PIPE_BUF));
}

bool Outlet::may_stall(int fd) {
  struct stat what {};
  return fstat(fd, &what) == 0 && (S_ISFIFO(what.st_mode) || S_ISSOCK(what.st_mode));
}

}  // namespace orrery
