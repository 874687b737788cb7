// SPDX-License-Identifier: Apache-2.0
#include "launcher.h"

#include "mpi_header.h"

#include <cstdlib>

namespace mpi {
namespace {

#ifdef OPEN_MPI
constexpr const char *own = "Open MPI", *other = "MPICH";
constexpr const char *own_start = "mpirun.openmpi", *other_start = "mpiexec.mpich";
#else
constexpr const char *own = "MPICH", *other = "Open MPI";
constexpr const char *own_start = "mpiexec.mpich", *other_start = "mpirun.openmpi";
#endif

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
#ifdef OPEN_MPI
  const bool own_launcher = by_open_mpi(), other_launcher = by_mpich();
#else
  const bool own_launcher = by_mpich(), other_launcher = by_open_mpi();
#endif
  if (own_launcher) return "";
  if (other_launcher)
    return std::string("the launcher is ") + other + "'s and this build speaks " + own +
           ": start the ranks with " + own_start + ", or install the build for " + other;
  if (const char* variable = by_another())
    return std::string("the ranks were started without MPI (") + variable +
           " is set): start them with " + own_start + " or " + other_start;
  return "";
}

std::string start_command(int ranks) {
  return std::string(own_start) + " -n " + std::to_string(ranks);
}

}  // namespace mpi
