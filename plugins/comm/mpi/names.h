// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are killed while MPICH starts would leave names of the library in /dev/shm.
#pragma once

namespace mpi {

// Chooses, where the user has not, ways of the library that need no name, or none for long.
// REQUIRES: before MPI_Init, and the same on all ranks. `one_host`: all ranks are on this one.
void spare_names(bool one_host);

}  // namespace mpi
