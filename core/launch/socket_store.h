// SPDX-License-Identifier: Apache-2.0
//
// A rank's side of the store: a connection to whoever serves it, the page of the dead, and a thread
// that takes what comes. It answers for the rank whatever the others of this process do: only a
// process that is stopped, or dead, does not.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "launch/connection.h"
#include "launch/store.h"
#include "launch/wire.h"

namespace orrery {

class SocketStore : public Store {
 public:
  enum class Server { launcher, rank_0 };

  // Closes `board`, the page's descriptor; with -1 the page is this store's own, and the server's
  // messages fill it.
  SocketStore(Server server, std::unique_ptr<Connection> connection, int board, int size,
              std::string job);
  ~SocketStore() override;
  SocketStore(const SocketStore&) = delete;

  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, int64_t deadline_ns) override;
  int dead(int rank) const override;
  void blame(const Error& why) override;
  std::optional<Error> blamed() override;
  std::optional<WorkAnswer> ask(int rank) override;
  void report(const std::string& error) override;
  const std::string& job() const override { return job_; }

 private:
  std::string await(uint32_t id, const std::string& what, int64_t deadline_ns,
                    std::unique_lock<std::mutex>& lock);
  int first_dead() const;
  std::string loss() const;
  uint32_t send(wire::Kind kind, const std::string& key, const std::string& value);
  void listen();
  void handle(Message& message);
  void answer(uint32_t id);
  const char* server_name() const;

  const Server server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Connection> connection_;
  int size_;
  wire::Board* board_ = nullptr;
  uint32_t last_id_ = 0;
  std::map<uint32_t, std::optional<std::string>> asked_;  // by id, and what has come
  std::optional<Error> blamed_;
  std::atomic<bool> server_gone_{false};
  std::string job_;
  int stop_ = -1;
  std::thread listener_;
};

}  // namespace orrery
