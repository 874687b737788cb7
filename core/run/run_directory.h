// SPDX-License-Identifier: Apache-2.0
//
// The directory that observers write to: the one that the user has named, or one that is made when
// there is first something to write. [main thread]
#pragma once

#include <string>

#include "launch/environment.h"
#include "run/observers.h"

namespace orrery {

class RunDirectory {
 public:
  // Makes and locks it, for this rank alone. Tells whether it is locked, as a fact. Throws Error if
  // the user has named one that cannot be used; without another one a line says that there is none.
  void take(const World& world, Observers& to);
  // The same for all ranks, whether they have taken it already or not. Collective.
  void take_together(const World& world, Observers& to);
  void leave();

  const std::string& path() const { return path_; }  // "": there is none

 private:
  std::string refusal(const World& world, Observers& to);
  std::string path_;
};

}  // namespace orrery
