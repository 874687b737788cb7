// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "library.h"

namespace mpi {
namespace {

constexpr const char *names[] = {"MPICH", "Open MPI"},
                     *starts[] = {"mpiexec.mpich", "mpirun.openmpi"};

// PMIx is what Open MPI asks for its world (mpirun, srun --mpi=pmix), PMI what MPICH asks (mpiexec,
// srun --mpi=pmi2).
bool by_open_mpi() { return std::getenv("PMIX_RANK") || std::getenv("OMPI_COMM_WORLD_RANK"); }
bool by_mpich() { return std::getenv("PMI_RANK") && std::getenv("PMI_SIZE"); }

// A launcher of ranks that speaks neither: "orrery run -n", torchrun, srun --mpi=none.
const char* by_another() {
  for (const char* variable : {"ORRERY_RANK", "RANK", "SLURM_STEP_ID"})
    if (std::getenv(variable)) return variable;
  return nullptr;
}

}  // namespace

std::string why_not_here() {
  const bool own = is_open_mpi ? by_open_mpi() : by_mpich();
  const bool other = is_open_mpi ? by_mpich() : by_open_mpi();
  if (own) return "";
  if (other)
    return std::string("the launcher is ") + names[!is_open_mpi] + "'s and this build speaks " +
           names[is_open_mpi] + ": start the ranks with " + starts[is_open_mpi] +
           ", or install the build for " + names[!is_open_mpi];
  if (const char* variable = by_another())
    return std::string("the ranks were started without MPI (") + variable +
           " is set): start them with " + starts[is_open_mpi] + " or " + starts[!is_open_mpi];
  return "";
}

std::string start_command(int ranks) {
  return std::string(starts[is_open_mpi]) + " -n " + std::to_string(ranks);
}

}  // namespace mpi
