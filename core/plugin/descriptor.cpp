// SPDX-License-Identifier: Apache-2.0
#include "plugin/descriptor.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"

namespace orrery {
namespace {

constexpr uint32_t known_kinds = ORR_KIND_KERNEL | ORR_KIND_COMM | ORR_KIND_STRATEGY |
                                 ORR_KIND_OBSERVER | ORR_KIND_DEVICE | ORR_KIND_OP | ORR_KIND_DATA |
                                 kind_boot;

void check_layout(const orr_plugin& plugin) {
  if (plugin.magic != ORR_PLUGIN_MAGIC)
    fail(ORR_UNAVAILABLE, "its descriptor has the wrong magic {:#x}; rebuild it with ORR_PLUGIN",
         plugin.magic);
  if (plugin.bootstrap != ORR_BOOTSTRAP)
    fail(ORR_UNAVAILABLE,
         "speaks plugin bootstrap {} and this program speaks {}; rebuild it with this version's "
         "headers",
         plugin.bootstrap, int(ORR_BOOTSTRAP));
  if (plugin.size < sizeof plugin)
    fail(ORR_UNAVAILABLE, "its descriptor says {} bytes where {} are needed; rebuild it",
         plugin.size, sizeof plugin);
  if (plugin.n_interfaces == 0 || plugin.n_interfaces > ORR_MAX_INTERFACES)
    fail(ORR_UNAVAILABLE, "its descriptor lists {} interfaces; 1 to {} are allowed",
         plugin.n_interfaces, int(ORR_MAX_INTERFACES));
}

bool is_plugin_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// How many bytes the UTF-8 character at the beginning of `text` has; 0 if there is no valid one, or
// it is a control character.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= ' ' && byte(0) != 0x7f;
  const size_t n = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < n) return 0;
  for (size_t i = 1; i < n; ++i)
    if (byte(i) >> 6 != 2) return 0;
  // Refused: encodings longer than need be, surrogates, and codes beyond the last character.
  const bool wrong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) > 0x9f) ||
                     (byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) > 0x8f);
  return wrong ? 0 : n;
}

void check_text(const char* what, std::string_view text) {
  for (size_t at = 0, n = 0; at < text.size(); at += n)
    if ((n = character(text.substr(at))) == 0)
      fail(ORR_UNAVAILABLE,
           "its descriptor's {} has the byte {:#04x} at {}, which is no text in UTF-8; rebuild it",
           what, static_cast<unsigned char>(text[at]), at);
}

}  // namespace

void set_kind_boot(orr_plugin& plugin) {
  plugin.kinds &= ~kind_boot;
  const uint32_t n = std::min<uint32_t>(plugin.n_interfaces, ORR_MAX_INTERFACES);
  for (uint32_t i = 0; i < n; ++i)
    if (std::string_view(plugin.interfaces[i].id) == "boot") plugin.kinds |= kind_boot;
}

void check_descriptor(const orr_plugin& plugin) {
  check_layout(plugin);
  if (plugin.name[0] == 0 || plugin.kinds == 0)
    fail(ORR_UNAVAILABLE, "its descriptor has no {}; give ORR_PLUGIN one",
         plugin.name[0] == 0 ? "name" : "kind");
  check_text("name", plugin.name);
  if (!is_plugin_name(plugin.name))
    fail(ORR_UNAVAILABLE, "its descriptor gives it the name '{}'; use a-z, 0-9, _ and -",
         plugin.name);
  check_text("version", plugin.version);
  check_text("build", plugin.build);
  check_text("summary", plugin.summary);
  for (const orr_interface_id& interface : plugin.interfaces)
    check_text("list of interfaces", interface.id);
  if (!(plugin.kinds & known_kinds))
    fail(
        ORR_UNAVAILABLE,
        "its descriptor has the kinds {:#x}, of which this program knows none; install a newer one",
        plugin.kinds);
}

}  // namespace orrery
