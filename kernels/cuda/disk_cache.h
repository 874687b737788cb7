// SPDX-License-Identifier: Apache-2.0
//
// What took time to find out and holds for the next run too: a file for each key in orrery/cuda/ of
// XDG_CACHE_HOME, or else of ~/.cache. The file is named by a hash of the key, and begins with a
// hash of key and value. It appears as a whole, so that ranks and jobs may write it at the same
// time. The folder may be deleted at any time.
#pragma once

#include <optional>
#include <string>

namespace orr_cuda {

// While it lives, no other thread or process of this user makes the value of this key: ranks that
// want the same wait for the first one, and find it kept. Nobody waits for longer than a minute,
// nor where the folder cannot be written. [any thread]
class DiskLock {
 public:
  explicit DiskLock(const std::string& key);
  ~DiskLock();
  DiskLock(const DiskLock&) = delete;

 private:
  int file_;
};

// The value that was kept; empty if there is none. A damaged file counts as none, and is logged.
std::optional<std::string> kept_on_disk(const std::string& key);

// Keeps a value, and returns whether it could. If not, that is logged once, and the next run does
// without.
bool keep_on_disk(const std::string& key, const std::string& value);

}  // namespace orr_cuda
