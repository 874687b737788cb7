// SPDX-License-Identifier: Apache-2.0
#include "run/runtime.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "lower/channel.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "run/agree.h"
#include "run/profile.h"
#include "run/thread_pool.h"

namespace orrery {
namespace {

// Why the plugin does not work here; "" if it does.
std::string refusal(const orr_kernel_api& api) {
  char reason[128] = "";
  if (api.probe(api.self, reason, sizeof reason) > 0) return "";
  return *reason ? reason : "it gives no reason";
}

// The device of all these kernel plugins.
std::string device_of(const std::vector<std::string>& kernels) {
  if (kernels.empty()) return "host";
  const std::string device = Registry::get().kernel(kernels.front()).device;
  for (const std::string& name : kernels)
    if (const char* other = Registry::get().kernel(name).device; other != device)
      fail(ORR_INVALID,
           "kernels '{}' work on device '{}' and '{}' on '{}': choose plugins of one device",
           kernels.front(), device, name, other);
  return device;
}

// The kernel plugins that the user chose. If only a plan is made, their device may be absent.
std::vector<std::string> chosen_kernels() {
  const RuntimeOptions& options = runtime_options();
  const bool absent = options.plan_only && device_of(options.kernels) != "host";
  for (const std::string& name : options.kernels)
    if (const std::string why = absent ? "" : refusal(Registry::get().kernel(name)); !why.empty())
      fail(ORR_UNAVAILABLE, "kernels '{}' cannot run here: {}", name, why);
  device_of(options.kernels);
  return options.kernels;
}

std::vector<std::string> kernels_of_host() {
  std::vector<std::string> found;
  std::string refusals;
  for (const std::string& name : Registry::get().names(ORR_KIND_KERNEL)) {
    if (!Registry::get().loads(ORR_KIND_KERNEL, name)) continue;
    const orr_kernel_api& api = Registry::get().kernel(name);
    const bool host = std::string(api.device) == "host";
    const std::string why =
        host
            ? refusal(api)
            : fmt::format("it works on device '{}': choose it with --kernels {}", api.device, name);
    if (why.empty())
      found.push_back(name);
    else
      refusals += fmt::format("\n  {}: {}", name, why);
  }
  if (found.empty())
    fail(ORR_UNAVAILABLE,
         "no kernel plugin works on this machine; `orrery plugins` lists what was found{}{}",
         refusals, Registry::get().not_loaded(ORR_KIND_KERNEL));
  return found;
}

}  // namespace

RuntimeOptions& runtime_options() {
  static RuntimeOptions options;
  return options;
}

void SharedArena::reserve(uint64_t bytes) {
  if (owned_ && owned_->bytes >= bytes) return;
  Profile::Timer timer(Profile::get().once("memory of steps"));
  const Device& device = Runtime::get().device();
  owned_.reset();
  if (of_ == Of::staging)
    owned_ = device.pinned(bytes, "memory for exchanges");
  else
    owned_ = device.memory(bytes, of_ == Of::tensors ? "the arena" : "memory for sums over ranks");
  view_ = *owned_, ++moves_;
}

Runtime& Runtime::get() {
  static Runtime runtime;
  return runtime;
}

const World& Runtime::world() {
  if (!world_) world_ = std::make_unique<World>(detect());
  return *world_;
}

WorldComm& Runtime::comm() {
  if (!comm_)
    comm_ =
        std::make_unique<WorldComm>(world(), runtime_options().comm, runtime_options().link_speed,
                                    std::move(store_), [] { ThreadPool::get().unpin(); });
  return *comm_;
}

// A failure to reach the store is ignored here: the script may not need it, and if it does, comm()
// throws.
void Runtime::open_store() try {
  if (!runtime_options().plan_only) store_ = Store::open(world());
} catch (const Error& e) {
  if (e.code() != ORR_UNAVAILABLE) throw;
}

int Runtime::group(const Mesh& mesh, const std::string& axis) {
  const int rank = world().rank;
  Mesh::Shape shape = mesh.shape_of(axis, rank);
  if (world().size == 1 || shape == Mesh::Shape{{world().size, 1}}) return 0;
  auto [at, fresh] = groups_.try_emplace({std::move(shape), 0}, 0);
  if (fresh)
    at->second =
        comm().split(mesh.peer(axis, 0, rank), mesh.coordinate(axis, rank), !mesh.one_lane, axis);
  return at->second;
}

std::pair<int, int> Runtime::channel(const Mesh& mesh, const Exchange& e) {
  const int rank = world().rank, number = channel_of(e, mesh, rank);
  if (number == 0) return {group(mesh, e.axis), e.root_or_peer};
  return {groups_.at({mesh.shape_of(e.axis, rank), number}), e.op == ORR_COLL_SEND ? 1 : 0};
}

// Makes a communicator of each pair of neighbours: its sender is rank 0, its receiver rank 1.
void Runtime::form_channels(const Mesh& mesh) {
  const int rank = world().rank, me = mesh.coordinate(mesh.schedule.axis, rank);
  const auto all = message_channels(mesh.size_of(mesh.schedule.axis));
  for (size_t i = 0; i < all.size(); ++i) {
    auto [at, fresh] =
        groups_.try_emplace({mesh.shape_of(mesh.schedule.axis, rank), static_cast<int>(i) + 1}, 0);
    if (!fresh) continue;
    const int sender = all[i].sender(me);
    const auto member = [&](int coordinate) {
      return sender == kNone ? -1 : mesh.peer(mesh.schedule.axis, coordinate, rank);
    };
    at->second = comm().split(
        member(sender), me == sender ? 0 : 1, true,
        fmt::format("rank {} to rank {}", member(sender), member(all[i].receiver(me))));
  }
}

bool Runtime::has_lanes() {
  if (device_of(kernels()) != "host") return false;
  const orr_comm_api& api = Registry::get().comm(runtime_options().comm);
  orr_comm_caps caps{};
  caps.size = sizeof caps;
  char reason[256] = "";
  api.probe(api.self, &caps, reason, sizeof reason);
  return caps.flags & ORR_COMM_CONCURRENT;
}

void Runtime::form_groups(const Mesh& mesh) {
  for (const Axis& axis : mesh.axes) group(mesh, axis.name);
  const std::string sums = mesh.gradient_axis();
  for (const std::string& several :
       {mesh.batch_axis, sums, without_axis(sums, mesh.gathered_axis())})
    if (!several.empty()) group(mesh, several);
  for (const SplitAxis& h : mesh.split_axes)
    for (const std::string& half : {h.outer, h.inner}) group(mesh, half);
  if (!mesh.one_lane && world().size > 1) form_channels(mesh);
}

Device& Runtime::device() {
  if (!device_) {
    auto device = std::make_unique<Device>(device_of(runtime_options().kernels));
    device->open(world());
    device_ = std::move(device);
  }
  return *device_;
}

std::shared_ptr<const orr_memory> Runtime::exchanged(uint64_t bytes, int group) {
  const auto keep = [](const orr_memory*) {};
  if (device().is_host()) return {comm().allocate(bytes, group), keep};
  if (comm().gives_device_memory()) return {comm().allocate_on_device(bytes, group), keep};
  return device().memory(bytes, "memory for exchanges");
}

const std::vector<std::string>& Runtime::kernels() {
  if (kernels_.empty())
    kernels_ = runtime_options().kernels.empty() ? kernels_of_host() : chosen_kernels();
  return kernels_;
}

void Runtime::start_observers() {
  begun_ = true;
  observers_.fact("run/ranks", world().size);
  observers_.start(world().rank, world().size, directory_.path(),
                   runtime_options().run_directory.empty());
  observers_.begin(planned_steps_);
}

void Runtime::begin_records() {
  if (begun_) return;
  directory_.take(world(), observers_);
  start_observers();
}

void Runtime::begin_run() {
  if (stepped_) return;
  directory_.take_together(world(), observers_);
  stepped_ = true;
  if (begun_)
    observers_.plan(planned_steps_);
  else
    start_observers();
}

void Runtime::settle(const AtWork* but) {
  while (!at_work_.empty() && at_work_.front().get() != but) {
    at_work_.front()->drain();
    at_work_.erase(at_work_.begin());
  }
}

// Writes the exchanges of this rank to the run's directory, if it ends because ranks did not meet.
static void save_exchanges(const WorldComm& comm, const std::string& error) {
  const std::string& directory = runtime_options().run_directory;
  const ExchangeLog* log = comm.failed_exchanges();
  if (directory.empty() || !log) return;
  std::error_code ignored;  // what cannot be made cannot be written to either
  std::filesystem::create_directories(directory, ignored);
  const std::string path = fmt::format("{}/exchanges.{}.json", directory, comm.rank());
  std::ofstream file(path);
  file << log->text(comm.rank(), comm.size(), error);
  if (!file.flush()) fmt::print(stderr, "orrery: {} cannot be written\n", path);
}

void Runtime::report(const std::string& error, bool stopped) {
  for (auto& work : at_work_) work->abandon(error);
  at_work_.clear();
  if (comm_) save_exchanges(*comm_, error);
  if (comm_ || store_) (comm_ ? comm_->store() : *store_).report(error);
  stepped_ = false;
  if (std::exchange(begun_, false)) observers_.failure(error, stopped);
  directory_.leave();
}

void Runtime::close() {
  stepped_ = false;
  if (std::exchange(begun_, false)) observers_.stop();
  directory_.leave();
  planned_steps_ = 0;
  if (const std::string names = comm_ ? comm_->composed() : ""; !names.empty())
    Profile::get().note(fmt::format("comm '{}' has no {}: composed of its messages",
                                    runtime_options().comm, names));
  comm_.reset();
  store_.reset();
  groups_.clear();
}

}  // namespace orrery
