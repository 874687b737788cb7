// SPDX-License-Identifier: Apache-2.0
//
// In what Open MPI and MPICH differ: their launchers, and how they begin and end.
#pragma once

#include <string>

// Without C++ bindings, which are gone from the standard.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <mpi.h>
#pragma GCC diagnostic pop

namespace mpi {

#ifdef OPEN_MPI
#define ORR_MPI_LIBRARY "Open MPI"
constexpr bool is_open_mpi = true;
#else
#define ORR_MPI_LIBRARY "MPICH"
constexpr bool is_open_mpi = false;
#endif

// launcher.cpp. "" if this library can form the world here, else why not and what to type instead:
// a program of one library under the other's launcher would be many worlds of one rank, silently.
// Reads the environment only. [any thread]
std::string why_not_here();
// "mpirun -n 4", of this build's library, for messages.
std::string start_command(int ranks);

// library.cpp. Ranks that are killed while MPICH starts would leave names of the library in
// /dev/shm: chooses, where the user has not, ways of the library that need no name, or none for
// long. REQUIRES: before MPI_Init, and the same on all ranks. `one_host`: all are on this one.
void spare_names(bool one_host);
// Ends MPI together with the peers. REQUIRES: all ranks have agreed to end, nothing is under way.
void finalize(bool several_hosts);

}  // namespace mpi
