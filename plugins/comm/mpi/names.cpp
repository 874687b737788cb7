// SPDX-License-Identifier: Apache-2.0
#include "names.h"

#include "mpi_header.h"

#ifdef OPEN_MPI

// Its segments are named as long as the ranks live; its daemon removes them after ranks that died.
void mpi::spare_names(bool) {}

#else

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

namespace mpi {
namespace {

bool moves_by_ucx() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  return MPI_Get_library_version(version, &length) == MPI_SUCCESS &&
         std::strstr(version, "ch4:ucx");
}

// "^" in lists of transports is newer than UCX itself.
bool ucx_can_exclude() {
  void* library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
  using Version = void (*)(unsigned*, unsigned*, unsigned*);
  const auto ask = reinterpret_cast<Version>(library ? dlsym(library, "ucp_get_version") : nullptr);
  unsigned major = 0, minor = 0, release = 0;
  if (ask) ask(&major, &minor, &release);
  if (library) dlclose(library);
  return major > 1 || minor >= 13;
}

}  // namespace

// MPICH's ranks of a host meet in a named file (mpich_shar_*) that is there until the last of them
// has come: not if each believes to be alone. UCX finds out by itself who is near, and moves all
// bytes. It names its own memory (ucx_shm_posix_*) while it fills all of it with zeros; that of
// System V loses its name within two calls of the kernel.
void spare_names(bool one_host) {
  if (!moves_by_ucx()) return;
  if (one_host) setenv("MPIR_CVAR_NOLOCAL", "1", 0);
  if (ucx_can_exclude()) setenv("UCX_TLS", "^posix", 0);
}

}  // namespace mpi

#endif
