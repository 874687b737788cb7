// SPDX-License-Identifier: Apache-2.0
//
// Finds plugins by kind and name. The registry knows no names of its own: it lists the files in the
// search directories (ORRERY_PLUGIN_PATH, the build tree's or the install directory's), reads each
// descriptor from its file, and loads a plugin when it is asked for. [main thread]
#pragma once

#include <orrery/boot.h>
#include <orrery/checkpoint.h>
#include <orrery/comm.h>
#include <orrery/data.h>
#include <orrery/device.h>
#include <orrery/kernel.h>
#include <orrery/observer.h>
#include <orrery/op.h>
#include <orrery/plugin.h>
#include <orrery/storage.h>
#include <orrery/strategy.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plugin/descriptor.h"

namespace orrery {

// A plugin file found on disk. `refusal` says why it cannot be loaded ("" if it can).
struct PluginFile {
  std::filesystem::path path;
  orr_plugin descriptor{};  // entry is not valid before loading
  std::string refusal;
};

class Registry {
 public:
  // The process-wide registry; scans on first use.
  static Registry& get();

  const std::vector<PluginFile>& files() const { return files_; }
  // Adds a directory in front of the search path, or one file. Later look-ups see it.
  void add(const std::filesystem::path& path);

  // The table of the plugin of this kind and name, loaded now if need be, copied to the host's full
  // size with its holes filled. Throws Error naming path, stage, reason and fix; an unknown name
  // gets the nearest one. Tables live for the process.
  const orr_kernel_api& kernel(const std::string& name);
  // Plugins of one name in one directory are builds of one plugin, for libraries that exclude each
  // other. The first whose probe says yes is taken; if none does, the error has all their reasons.
  const orr_comm_api& comm(const std::string& name);
  const orr_comm_api& comm(const PluginFile& file);  // this build, whatever its probe says
  const orr_strategy_api& strategy(const std::string& name);
  const orr_observer_api& observer(const std::string& name);
  const orr_op_api& op(const std::string& name);
  const orr_data_api& data(const std::string& name);
  const orr_device_api& device(const std::string& name);  // "host" is the core's own
  const orr_boot_api& boot(const std::string& name);
  // Of the first plugin with the interface "storage" that serves the address; throws likewise.
  const orr_storage_api& storage(const std::string& address);
  // Of all plugins with the interface "checkpoint"; throws likewise.
  std::vector<const orr_checkpoint_api*> checkpoints();

  // What the plugin, which is loaded, tells of this machine (facts.h): names and texts, in order.
  // Empty if it has no such interface.
  std::vector<std::pair<std::string, std::string>> facts(const PluginFile& file);

  // Names of loadable plugins with this ORR_KIND_ bit, or kind_boot, sorted.
  std::vector<std::string> names(uint32_t kind) const;
  // Whether this kernel, observer, op or boot plugin, which nobody has named, can be loaded now.
  // Why one cannot is said once, as a warning, and in errors about what is missing.
  bool loads(uint32_t kind, const std::string& name);
  // For such errors: "; kernel 'x' could not be loaded: plugin ...", or "".
  std::string not_loaded(uint32_t kind) const;
  void leave_warnings_to_rank_0() { warns_ = false; }

 private:
  void scan();
  const PluginFile& find(uint32_t kind, const std::string& name) const;
  std::vector<const PluginFile*> builds(uint32_t kind, const std::string& name) const;
  template <class T>
  const T& table(const std::string& interface, const PluginFile& file);

  bool warns_ = true;
  std::map<std::pair<uint32_t, std::string>, std::string> not_loaded_;  // why
  std::vector<std::filesystem::path> added_;
  std::vector<PluginFile> files_;
  std::map<std::filesystem::path, orr_exports> opened_;
  std::map<std::pair<std::string, std::filesystem::path>, std::shared_ptr<void>> tables_;
};

// "kernel" for ORR_KIND_KERNEL; also the id of the interface of that kind.
const char* kind_name(uint32_t kind);
// "kernel+device" for a mask of them, each of which may be kind_boot.
std::string kinds_text(uint32_t kinds);

}  // namespace orrery
