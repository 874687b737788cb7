// SPDX-License-Identifier: Apache-2.0
#include "store/lease.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "base/quiet.h"

namespace orrery {
namespace {

constexpr std::chrono::milliseconds lease_look{500};

// What changes when a lease is renewed. The file is opened anew each time, because a client of a
// network file system asks its server then.
std::array<int64_t, 4> state_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat facts {};
  if (fd < 0) return {};
  ::fstat(fd, &facts);
  ::close(fd);
  return {static_cast<int64_t>(facts.st_ino), facts.st_size, facts.st_mtim.tv_sec,
          facts.st_mtim.tv_nsec};
}

}  // namespace

Lease::Lease(int fd) : owner_(::getpid()) {
  const AllSignalsBlocked quiet;
  thread_ = std::thread([this, fd] { renew(fd); });
}

Lease::~Lease() {
  if (owner_ != ::getpid()) {  // a fork has no copy of the thread
    thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ending_.notify_all();
  thread_.join();
}

void Lease::renew(int fd) {
  for (std::unique_lock lock(mutex_);
       !ending_.wait_for(lock, lease_renewal, [&] { return ends_; });)
    ::futimens(fd, nullptr);
}

bool lease_is_renewed(const std::string& path) {
  const auto before = state_of(path);
  // Counted in looks: a server that answers nobody for a while ends no lease.
  for (int looks = 0; looks < lease_patience / lease_look; ++looks) {
    std::this_thread::sleep_for(lease_look);
    if (state_of(path) != before) return true;
  }
  return false;
}

}  // namespace orrery
