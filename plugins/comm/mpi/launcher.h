// SPDX-License-Identifier: Apache-2.0
//
// Whose launcher started this process, and whether it is that of the MPI library in this build. A
// program of one library under the other's launcher would be many worlds of one rank, silently.
#pragma once

#include <string>

namespace mpi {

// "" if this library can form the world here, else why not and what to type instead. Reads the
// environment only. [any thread]
std::string why_not_here();

// "mpirun -n 4", of this build's library, for messages.
std::string start_command(int ranks);

}  // namespace mpi
