// SPDX-License-Identifier: Apache-2.0
//
// What the programs of this process share: the world, the communicator, the device, the chosen
// kernel plugins, the observers, and one arena, as large as the largest compiled program needs.
// [main thread]
#pragma once

#include <orrery/device.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/world_comm.h"
#include "lower/rank_plan.h"
#include "partition/mesh.h"
#include "run/copy_lane.h"
#include "run/device.h"
#include "run/observers.h"
#include "run/run.h"
#include "run/run_directory.h"

namespace orrery {

// Transient memory, shared by programs that never run at the same time. The orr_memory keeps its
// address when the arena grows, so that buffers that refer to it stay valid.
class SharedArena {
 public:
  enum class Of { tensors, sums, staging };  // staging: pinned memory, which the host can access
  explicit SharedArena(Of of = Of::tensors) : of_(of) {}
  SharedArena(const SharedArena&) = delete;
  void reserve(uint64_t bytes);
  const orr_memory* memory() const { return &view_; }
  uint64_t bytes() const { return view_.bytes; }  // allocated
  int moves() const { return moves_; }            // how often the bytes have moved

 private:
  Of of_;
  int moves_ = 0;
  orr_memory view_{};
  std::shared_ptr<const orr_memory> owned_;
};

// Work on states by other threads. All ranks take part in it, until they end it together.
class AtWork {
 public:
  virtual ~AtWork() = default;
  virtual void drain() = 0;  // ends it; collective
  // Ends it with this error, here and on the peers.
  virtual void abandon(const std::string& why) = 0;
};

class Runtime {
 public:
  static Runtime& get();

  const World& world();  // this process's place in the job, from its environment
  WorldComm& comm();     // opened on first use; collective
  // The group of ranks that differ from this one only in their coordinate on `axis`, for
  // WorldComm::submit. Made on first use; collective.
  int group(const Mesh& mesh, const std::string& axis);
  // The group of an exchange's channel (lower/channel.h), and the exchange's peer or root in it.
  // REQUIRES: form_groups.
  std::pair<int, int> channel(const Mesh& mesh, const Exchange& e);
  // Whether several exchanges of a rank may be in progress: the backend is ORR_COMM_CONCURRENT, and
  // the kernels work on the host.
  bool has_lanes();
  // Makes all groups of a mesh, in the same order on all ranks, whichever each will use.
  void form_groups(const Mesh& mesh);
  // Opens the job's store, so that this rank answers ranks that form the world while its script
  // does something else first. Collective.
  void open_store();
  bool has_comm() const { return comm_ != nullptr; }
  // The names of the kernel plugins that are used, all for one device. If only a plan is made, the
  // device may be absent.
  const std::vector<std::string>& kernels();
  Device& device();  // the device of the kernel plugins; opened on first use
  SharedArena& arena() { return arena_; }
  SharedArena& staging() { return staging_; }  // for exchanges of a device
  SharedArena& sums() { return sums_; }  // receives the operands of sums that stay on the device
  // Memory of the device that ranks of a group exchange. If the backend lets peers read it, it is
  // freed with the communicator. Collective over the group.
  std::shared_ptr<const orr_memory> exchanged(uint64_t bytes, int group);
  CopyLane& copies() { return copies_; }
  Observers& observers() { return observers_; }
  // The last step that the script's newest loop over batches will take; 0: unknown.
  void set_planned_steps(int64_t last) { planned_steps_ = last; }
  // Adds work that has begun; it lasts until `settle` is called.
  void begin_work(std::shared_ptr<AtWork> work) { at_work_.push_back(std::move(work)); }
  // Ends all work except `but`. Must be called before states are read or written. Collective if
  // there is any work.
  void settle(const AtWork* but = nullptr);
  // The scope in which observers hear of this run.
  Observers::Scope observe(const std::string& run) { return observers_.of(run, planned_steps_); }
  // Starts the observers of this rank, for what it records before its first training step.
  void begin_records();
  // Starts the observers at the first training step of the process; does nothing afterwards.
  // Collective.
  void begin_run();
  // Tells observers and the launcher the error that ends this rank, and abandons its work.
  // `stopped`: it was told to stop, and has saved.
  void report(const std::string& error, bool stopped);
  // Stops the observers and closes the communicator. REQUIRES: every program is gone.
  void close();

 private:
  std::unique_ptr<World> world_;
  std::unique_ptr<WorldComm> comm_;
  void form_channels(const Mesh& mesh);
  void start_observers();
  std::map<std::pair<Mesh::Shape, int>, int> groups_;  // by the axis's shape and the channel
  std::vector<std::string> kernels_;
  std::unique_ptr<Device> device_;
  SharedArena arena_, staging_{SharedArena::Of::staging}, sums_{SharedArena::Of::sums};
  CopyLane copies_;
  Observers observers_;
  RunDirectory directory_;
  std::vector<std::shared_ptr<AtWork>> at_work_;
  int64_t planned_steps_ = 0;
  bool begun_ = false;            // the observers are started
  bool stepped_ = false;          // the run has begun on all ranks
  std::unique_ptr<Store> store_;  // until comm_ is made, which takes it over
};

}  // namespace orrery
