// SPDX-License-Identifier: Apache-2.0
//
// What the programs of this process share: the world, the chosen kernel plugins, the observers and
// one arena, as large as the largest program that has been compiled. [main thread]
#pragma once

#include <orrery/device.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/world_comm.h"
#include "partition/mesh.h"
#include "run/copy_lane.h"
#include "run/device.h"
#include "run/observers.h"
#include "run/run.h"

namespace orrery {

// Transient memory, shared by programs that never run at the same time. `memory` keeps its address
// when it grows, so that buffers into it stay valid.
class SharedArena {
 public:
  enum class Of { tensors, sums, staging };  // staging: the host reaches it
  explicit SharedArena(Of of = Of::tensors) : of_(of) {}
  SharedArena(const SharedArena&) = delete;
  void reserve(uint64_t bytes);
  const orr_memory* memory() const { return &view_; }
  uint64_t bytes() const { return view_.bytes; }  // allocated
  int moves() const { return moves_; }            // how often the bytes have got another place

 private:
  Of of_;
  int moves_ = 0;
  orr_memory view_{};
  std::shared_ptr<const orr_memory> owned_;
};

// Work of other threads on states, in which all ranks take part until they end it together.
class AtWork {
 public:
  virtual ~AtWork() = default;
  virtual void drain() = 0;  // collective
  // Ends it here with this error, and on the peers.
  virtual void abandon(const std::string& why) = 0;
};

class Runtime {
 public:
  static Runtime& get();

  const World& world();  // as the launcher said
  WorldComm& comm();     // opened on first use; collective
  // The group of the ranks that share all coordinates with this one but those on `axis`: for
  // WorldComm::submit. Made on first use; collective.
  int group(const Mesh& mesh, const std::string& axis);
  // All of them, in one order on all ranks, whatever each will use.
  void form_groups(const Mesh& mesh);
  // Opens the job's store, so that this rank answers those who form the world while its script
  // does something else first. Collective.
  void meet();
  bool has_comm() const { return comm_ != nullptr; }
  // Plugins that work here, by name, all on one device. For a plan alone the device may be absent.
  const std::vector<std::string>& kernels();
  Device& device();  // theirs; opened on first use
  SharedArena& arena() { return arena_; }
  SharedArena& staging() { return staging_; }  // of exchanges of a device
  SharedArena& sums() { return sums_; }  // where operands of sums arrive that stay on the device
  // Memory of the device that ranks of a group exchange; where peers can read it, given back with
  // the communicator. Collective over the group.
  std::shared_ptr<const orr_memory> exchanged(uint64_t bytes, int group);
  CopyLane& copies() { return copies_; }
  Observers& observers() { return observers_; }
  // The last step that the script's newest loop over batches will take; 0: unknown.
  void set_planned_steps(int64_t last) { planned_steps_ = last; }
  // Work that has begun; it lasts until somebody settles.
  void begin_work(std::shared_ptr<AtWork> work) { at_work_.push_back(std::move(work)); }
  // Ends all work, but `but`: whoever reads or writes states says this first. Collective if there
  // is any.
  void settle(const AtWork* but = nullptr);
  // Starts the observers, once; they hear of the run from its first training step on.
  void begin_run();
  // Tells observers and the launcher what this rank fails with; drops its work.
  void report(const std::string& error);
  // Stops the observers and drops the communicator in order; REQUIRES: every program is gone.
  void close();

 private:
  std::unique_ptr<World> world_;
  std::unique_ptr<WorldComm> comm_;
  // By sizes and distances of neighbours on the axes.
  std::map<std::vector<std::pair<int, int>>, int> groups_;
  std::vector<std::string> kernels_;
  std::unique_ptr<Device> device_;
  SharedArena arena_, staging_{SharedArena::Of::staging}, sums_{SharedArena::Of::sums};
  CopyLane copies_;
  Observers observers_;
  std::vector<std::shared_ptr<AtWork>> at_work_;
  int64_t planned_steps_ = 0;
  bool begun_ = false;
  std::unique_ptr<Store> store_;  // until there is a comm, which takes it
};

}  // namespace orrery
