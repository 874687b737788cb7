// SPDX-License-Identifier: Apache-2.0
//
// Ranks that a boot plugin brings together (orrery/boot.h), so that launchers and stores need no
// line here. The plugin says who this process is and carries one line of rank 0, which says where
// the ranks meet (meeting.h); from then on nothing differs from other launchers.
#pragma once

#include <memory>

#include "launch/environment.h"
#include "launch/store.h"

namespace orrery {

// Adds what boot plugins say to what the variables of known launchers say: the plugin that
// ORRERY_BOOT names, or, in a process that no launcher has started, the one that has. Throws Error
// if the named one has not, several have, or it contradicts the launcher. [main thread]
World with_boot(const World& by_variables);

// Brings the ranks together by world.boot; `launcher` as for `meet`. Collective. Throws Error as
// `meet` does. [main thread]
std::unique_ptr<Store> meet_by_boot(World world, std::unique_ptr<Store> launcher);

}  // namespace orrery
