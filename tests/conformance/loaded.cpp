// SPDX-License-Identifier: Apache-2.0
#include "conformance/loaded.h"

#include <cstring>

#include "plugin/loader.h"

namespace orrery::judge {
namespace {

Fit host_fit;  // of the table that the plugin's entry asks for

const void* host_interface(const char* id, uint32_t version) {
  // Never destroyed: the plugin keeps it, for as long as the process lives.
  static const auto& host = *new Guarded<orr_host>(host_table(), host_fit);
  return std::strcmp(id, "host") == 0 && version == 1 ? host.get() : nullptr;
}

}  // namespace

Loaded::Loaded(const Subject& subject, Fit fit)
    : boot_({sizeof(orr_bootstrap), host_interface}, fit),
      exports_({sizeof(orr_exports), nullptr, nullptr, nullptr}, fit) {
  host_fit = fit;
  open_plugin(subject.path, subject.descriptor, *boot_.get(), *exports_.get());
}

const void* Loaded::get(const char* id, uint32_t version) const {
  return exports_->get(exports_->self, id, version);
}

void Loaded::shut_down() {
  if (exports_->shutdown) exports_->shutdown(exports_->self);
}

const void* Loaded::given(uint32_t kind) const {
  const void* table = get(kind_name(kind), 1);
  if (!table)
    throw Fault("plugin.h: \"returns the plugin's table, the same each time, or NULL\"",
                fmt::format("a table for {}/1, which its descriptor lists", kind_name(kind)),
                "NULL");
  return table;
}

Registry& registry_with(const Subject& subject) {
  Registry& registry = Registry::get();
  static const bool added = (registry.add(subject.path), true);
  (void)added;
  return registry;
}

}  // namespace orrery::judge
