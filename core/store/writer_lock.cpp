// SPDX-License-Identifier: Apache-2.0
#include "store/writer_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "store/checkpoint.h"
#include "store/file.h"
#include "store/lease.h"

namespace orrery {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The time at which a process began, in ticks since the host started; "" if there is no such
// process. A later process with the same pid has another number.
std::string start_of(pid_t pid) {
  const std::string line = first_line(fmt::format("/proc/{}/stat", pid));
  const size_t name_ends = line.rfind(')');
  if (name_ends == std::string::npos) return "";
  std::istringstream rest(line.substr(name_ends + 1));
  std::string token;
  for (int field = 3; field <= 22; ++field) rest >> token;
  return token;
}

constexpr const char* kBegin = "process ";  // of the text in a lock

struct Owner {
  std::string host, boot, start;
  pid_t pid = 0;
  WriterJob job;
  bool leases = false;  // it renews a lease

  static Owner self(bool leases) {
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    return {host,
            first_line("/proc/sys/kernel/random/boot_id"),
            start_of(::getpid()),
            ::getpid(),
            writer_job(),
            leases};
  }
  static Owner parse(const std::string& text) {
    Owner o;
    std::istringstream lines(text);
    for (std::string name; lines >> name;) {
      if (name == "process") lines >> o.pid;
      if (name == "host") lines >> o.host;
      if (name == "boot") lines >> o.boot;
      if (name == "start") lines >> o.start;
      if (name == "job") lines >> o.job.name >> o.job.start;
      if (name == "lease") o.leases = true;
    }
    return o.start.empty() ? Owner{} : o;
  }
  std::string text() const {
    std::string text =
        fmt::format("{}{}\nhost {}\nboot {}\nstart {}\n", kBegin, pid, host, boot, start);
    if (!job.name.empty()) text += fmt::format("job {} {}\n", job.name, job.start);
    return leases ? text + "lease\n" : text;
  }
  std::string shown() const {
    return pid ? fmt::format("process {} on host {}", pid, host) : "another process";
  }
  bool is_here() const {
    const Owner me = self(false);
    return host == me.host && boot == me.boot;
  }
  // Whether the owner, which has no lock of the kernel, may be alive. One of another host that
  // renews no lease counts as alive.
  bool may_live(const std::string& path) const {
    if (pid <= 0) return false;
    if (is_here()) return start_of(pid) == start;
    return !leases || lease_is_renewed(path);
  }
  // Whether this job has given up the start that the owner is of.
  bool is_given_up() const {
    return !job.name.empty() && job.name == writer_job().name && job.start < writer_job().start;
  }
};

std::string read_all(int fd) {
  std::string text;
  char some[256];
  for (ssize_t n = 1; n != 0 && text.size() < 1024;) {
    n = ::pread(fd, some, sizeof some, static_cast<off_t>(text.size()));
    if (n < 0 && errno != EINTR) break;
    text.append(some, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  }
  return text;
}

bool same_file(int fd, const std::string& path) {
  struct stat open, named;
  return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

class HeldLock {
 public:
  HeldLock(const std::string& directory, const LockKind& kind)
      : kind_(kind), path_(directory + "/" + kind.file) {}
  HeldLock(const HeldLock&) = delete;
  ~HeldLock() {
    lease_.reset();
    if (fd_ >= 0 && pid_ == ::getpid() && ours()) ::unlink(path_.c_str());
    if (fd_ >= 0) ::close(fd_);
  }

  // Whether the file with that name is still the one that this process has written.
  bool ours() const { return same_file(fd_, path_) && read_all(fd_) == written_; }
  bool is_gone() const { return ::access(path_.c_str(), F_OK) != 0; }
  const std::string& path() const { return path_; }
  std::string owner() const { return Owner::parse(read_all(fd_)).shown(); }

  // Takes the lock. Returns false if the file was unlinked meanwhile, because its owner has ended
  // or was given up.
  bool take(const std::string& label) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd_ < 0) fail(ORR_FAILED, "{}: {} cannot be made: {}", label, path_, write_error(errno));
    struct flock whole {};
    whole.l_type = F_WRLCK;
    const int error = ::fcntl(fd_, F_OFD_SETLK, &whole) == 0 ? 0 : errno;
    const std::string text = read_all(fd_);
    const Owner before = Owner::parse(text);
    if (!text.starts_with(std::string(kBegin).substr(0, text.size())))
      fail(ORR_INVALID, "{}: {} holds something else than a lock; {}", label, path_, kind_.remedy);
    if (error && before.is_given_up()) {
      if (same_file(fd_, path_) && ::unlink(path_.c_str()) != 0 && errno != ENOENT)
        fail(ORR_FAILED, "{}: {}, the lock of an earlier start of this job, cannot be removed: {}",
             label, path_, write_error(errno));
      return false;
    }
    if (error == EAGAIN || error == EACCES)
      throw Locked(fmt::format("{}: {} {} there; wait for its end or {}", label, before.shown(),
                               kind_.is_doing, kind_.remedy));
    if (error && before.may_live(path_))
      throw Locked(
          fmt::format("{}: {} {} there, if it is still alive; {}, or remove {} when it has ended",
                      label, before.shown(), kind_.does, kind_.remedy, path_));
    if (!same_file(fd_, path_)) return false;
    write(Owner::self(error != 0).text(), label);
    if (error) lease_.emplace(fd_);
    return true;
  }

 private:
  void write(const std::string& text, const std::string& label) {
    written_ = text, pid_ = ::getpid();
    for (ssize_t done = ::ftruncate(fd_, 0), at = 0; at < std::ssize(written_); at += done) {
      if (done >= 0)
        done = ::pwrite(fd_, written_.data() + at, written_.size() - static_cast<size_t>(at), at);
      if (done < 0 && errno != EINTR)
        fail(ORR_FAILED, "{}: {} cannot be written: {}", label, path_, write_error(errno));
      done = std::max<ssize_t>(done, 0);
    }
  }

  const LockKind& kind_;
  std::string path_, written_;
  int fd_ = -1;
  pid_t pid_ = 0;
  std::optional<Lease> lease_;
};

std::map<std::string, std::unique_ptr<HeldLock>>& locks() {
  static std::map<std::string, std::unique_ptr<HeldLock>> held;
  return held;
}

}  // namespace

WriterJob& writer_job() {
  static WriterJob job;
  return job;
}

void hold_writer_lock(const std::string& directory, const std::string& label,
                      const LockKind& kind) {
  std::unique_ptr<HeldLock>& held = locks()[directory + "/" + kind.file];
  if (held && held->is_gone()) held.reset();  // the directory was removed
  if (held && !held->ours())
    throw Locked(fmt::format("{}: {} has begun to {} there, too; {}", label, held->owner(),
                             kind.do_there, kind.remedy));
  if (held) return;
  auto fresh = std::make_unique<HeldLock>(directory, kind);
  while (!fresh->take(label)) {
  }
  held = std::move(fresh);
}

void drop_writer_lock(const std::string& directory, const LockKind& kind) {
  locks().erase(directory + "/" + kind.file);
}

std::string living_writer(const std::string& directory, const LockKind& kind) {
  const std::string path = directory + "/" + kind.file;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return "";
  struct flock whole {};
  whole.l_type = F_WRLCK;
  const bool asked = ::fcntl(fd, F_OFD_GETLK, &whole) == 0;
  const Owner owner = Owner::parse(read_all(fd));
  ::close(fd);
  const bool alive = asked ? whole.l_type != F_UNLCK : owner.may_live(path);
  return alive ? owner.shown() : "";
}

}  // namespace orrery
