// SPDX-License-Identifier: Apache-2.0
//
// A rank's side of the store: a connection to whoever serves it, and the page of the dead.
#pragma once

#include <memory>
#include <mutex>

#include "job/connection.h"
#include "job/store.h"
#include "job/wire.h"

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
  bool dead(int rank) const override;
  void report(const std::string& error) override;
  const std::string& job() const override { return job_; }

 private:
  bool ended(int rank) const;
  int first_dead() const;
  uint32_t send(wire::Kind kind, const std::string& key, const std::string& value);
  void listen();
  const char* server_name() const;

  const Server server_;
  mutable std::mutex mutex_;
  std::unique_ptr<Connection> connection_;
  int size_;
  wire::Board* board_ = nullptr;
  uint32_t last_id_ = 0, answered_ = 0;
  std::string answer_;
  std::string job_;
};

}  // namespace orrery
