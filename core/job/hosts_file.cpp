// SPDX-License-Identifier: Apache-2.0
#include "job/hosts_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "job/wire.h"

namespace orrery {
namespace {

int slots_of(const std::string& word, const std::string& where) {
  constexpr std::string_view name = "slots=";
  if (!word.starts_with(name))
    fail(ORR_INVALID,
         "{}: '{}' is not understood: a line is a host's name, then slots=N if it takes more than "
         "one rank",
         where, word);
  int slots = 0;
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + name.size(), end, slots);
  if (error != std::errc() || stop != end || slots < 1 || slots > wire::max_ranks)
    fail(ORR_INVALID, "{}: '{}': a host takes 1 to {} ranks; leave its line out if it takes none",
         where, word, wire::max_ranks);
  return slots;
}

}  // namespace

std::vector<JobHost> read_hosts(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail(ORR_INVALID, "--hosts {}: cannot be read: {}", path, std::strerror(errno));
  std::vector<JobHost> hosts;
  int number = 0, total = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    JobHost host;
    host.where = fmt::format("{}:{}", path, ++number);
    if (!(words >> host.name)) continue;
    for (std::string word; words >> word;) host.slots = slots_of(word, host.where);
    if (host.name.starts_with("-"))
      fail(ORR_INVALID, "{}: '{}' is no name of a host", host.where, host.name);
    if (std::any_of(hosts.begin(), hosts.end(),
                    [&](const JobHost& h) { return h.name == host.name; }))
      fail(ORR_INVALID, "{}: '{}' stands here a second time: give it slots=N on one line",
           host.where, host.name);
    total += host.slots;
    hosts.push_back(host);
  }
  if (hosts.empty())
    fail(ORR_INVALID, "--hosts {}: names no host: write one per line, 'name slots=N'", path);
  if (total > wire::max_ranks)
    fail(ORR_INVALID, "--hosts {}: {} ranks, but a job has at most {}", path, total,
         wire::max_ranks);
  return hosts;
}

}  // namespace orrery
