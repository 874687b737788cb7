// SPDX-License-Identifier: Apache-2.0
//
// Files of servers, by the plugin that serves their addresses (orrery/storage.h), and their copies
// on this host, in ~/.cache/orrery/checkpoints (XDG_CACHE_HOME names another folder than ~/.cache).
#pragma once

#include <orrery/storage.h>

#include <optional>
#include <string>
#include <vector>

namespace orrery {

// Whether a path is an address, "SCHEME://...".
bool is_address(const std::string& path);
// "ADDRESS/NAME".
std::string address_in(const std::string& address, const std::string& name);

// All functions throw Error, which names the address. [any thread]
class RemoteFiles {
 public:
  // Throws Error if no plugin serves the address. [main thread]
  explicit RemoteFiles(const std::string& address);

  struct State {
    bool there = false;
    std::string version;
  };
  State get(const std::string& address, const std::string& path) const;
  // The same of a short text, which is "" if there is none.
  State get_text(const std::string& address, std::string& text) const;
  // With `before`, only if the file there is still in that state; returns whether it was written.
  bool put(const std::string& address, const std::string& path,
           const std::optional<State>& before = {}) const;
  bool put_text(const std::string& address, const std::string& text,
                const std::optional<State>& before = {}) const;
  // The addresses that begin so; none if the server has no such question.
  std::vector<std::string> list(const std::string& prefix) const;
  void remove(const std::string& address) const;

 private:
  const orr_storage_api* api_;
};

// A folder of this process, which is removed with what is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A copy of a file, which the processes of this host share; the last that has it removes it.
class SharedCopy {
 public:
  // `identity` tells the file, of so many bytes, from all others.
  SharedCopy(const RemoteFiles& files, const std::string& address, const std::string& identity,
             uint64_t bytes);
  ~SharedCopy();
  SharedCopy(const SharedCopy&) = delete;
  bool there() const { return there_; }  // else the server has no such file
  const std::string& path() const { return path_; }

 private:
  bool is_in_place() const;
  void close();

  std::string path_;
  int fd_ = -1;
  bool there_ = true;
};

}  // namespace orrery
