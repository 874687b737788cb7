// SPDX-License-Identifier: Apache-2.0
#include "base/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace orrery {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

uint64_t physical_memory() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::string read_text(const std::string& path, const std::string& label, int code, uint64_t most) {
  if (path.find('\0') != std::string::npos) fail(code, "{}: its name holds a zero byte", label);
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat facts;
  if (file.fd < 0 || ::fstat(file.fd, &facts) != 0)
    fail(code, "{}: cannot be read: {}", label, std::strerror(errno));
  if (S_ISDIR(facts.st_mode)) fail(code, "{}: is a directory, expected a file", label);
  if (!S_ISREG(facts.st_mode))
    fail(code, "{}: is no regular file, but a pipe or a device: copy what it gives into a file",
         label);
  const auto size = static_cast<uint64_t>(facts.st_size);
  if (const uint64_t limit = std::min(most, physical_memory()); size > limit)
    fail(code, "{}: has {} bytes, more than the {} that can be read", label, size, limit);
  std::string text(size, '\0');
  for (size_t at = 0; at < size;) {
    const ssize_t n = ::read(file.fd, &text[at], size - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(code, "{}: cannot be read: {}", label, std::strerror(errno));
    if (n == 0) fail(code, "{}: became shorter while it was read", label);
    at += static_cast<size_t>(n);
  }
  return text;
}

}  // namespace orrery
