// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts_file.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/error.h"
#include "base/text_file.h"
#include "launch/wire.h"

namespace orrery {
namespace {

int slots_of(const std::string& field, const std::string& where) {
  constexpr std::string_view name = "slots=";
  if (!field.starts_with(name))
    fail(ORR_INVALID,
         "{}: '{}' is not understood: a line is a host's name, then slots=N if it takes more than "
         "one rank",
         where, field);
  int slots = 0;
  const char* end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data() + name.size(), end, slots);
  if (error != std::errc() || stop != end || slots < 1 || slots > wire::max_ranks)
    fail(ORR_INVALID, "{}: '{}': a host takes 1 to {} ranks; leave its line out if it takes none",
         where, field, wire::max_ranks);
  return slots;
}

bool is_printed(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return c > ' ' && c != 0x7f; });
}

}  // namespace

std::vector<JobHost> read_hosts(const std::string& path) {
  constexpr uint64_t most = 16 << 20;
  std::istringstream file(read_text(path, "--hosts " + path, ORR_INVALID, most));
  std::vector<JobHost> hosts;
  int number = 0, total = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line.substr(0, line.find('#')));
    JobHost host;
    host.where = fmt::format("{}:{}", path, ++number);
    if (!(stream >> host.name)) continue;
    for (std::string field; stream >> field;) host.slots = slots_of(field, host.where);
    if (host.name.starts_with("-") || !is_printed(host.name))
      fail(ORR_INVALID, "{}: '{}' is no name of a host", host.where, host.name);
    if (std::any_of(hosts.begin(), hosts.end(),
                    [&](const JobHost& h) { return h.name == host.name; }))
      fail(ORR_INVALID, "{}: '{}' stands here a second time: give it slots=N on one line",
           host.where, host.name);
    total += host.slots;
    if (total > wire::max_ranks)
      fail(ORR_INVALID, "{}: {} ranks with this one, but a job has at most {}", host.where, total,
           wire::max_ranks);
    hosts.push_back(host);
  }
  if (hosts.empty())
    fail(ORR_INVALID, "--hosts {}: names no host: write one per line, 'name slots=N'", path);
  return hosts;
}

}  // namespace orrery
