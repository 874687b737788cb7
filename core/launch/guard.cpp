// SPDX-License-Identifier: Apache-2.0
#include "launch/guard.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "launch/supervisor.h"

namespace orrery {
namespace {

constexpr char guarded[] = "ORRERY_GUARDED";  // in the environment of the rank itself

std::vector<std::string> own_arguments() {
  std::ifstream line("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(line, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

class Guard : public Supervisor {
 public:
  Guard(Front& front, const World& world) : Supervisor(front), world_(world) {}

 protected:
  void start() override {
    ChildSpec spec{world_.rank, own_program(), own_arguments(), {}, {}, {true, true, true}};
    for (char** e = environ; *e; ++e) spec.env.emplace_back(*e);
    spec.env.push_back(fmt::format("{}=1", guarded));
    children_.push_back(start_child(spec, front_));
  }

  // Prints nothing if the rank has ended by its own error, which it has printed itself.
  int tell(size_t child) override {
    const Child& c = children_[child];
    if (c.signal || !c.stopped.empty())
      say(fmt::format("orrery: rank {} {}", c.rank, how_it_ended(c)));
    return c.code;
  }

 private:
  const World& world_;
};

}  // namespace

bool is_guard(const World& world) {
  return world.size > 1 && world.launcher_is_mute && !std::getenv(guarded);
}

int guard(const World& world) {
  Front front;
  return front.finish(Guard(front, world).run());
}

}  // namespace orrery
