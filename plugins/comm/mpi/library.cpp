// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#ifdef OPEN_MPI

// Its segments are named as long as the ranks live; its daemon removes them after ranks that died.
void mpi::spare_names(bool) {}
void mpi::finalize(bool) { MPI_Finalize(); }

#else

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace mpi {
namespace {

// "^" in lists of transports is newer than UCX itself.
bool ucx_can_exclude() {
  const auto ask = reinterpret_cast<void (*)(unsigned*, unsigned*, unsigned*)>(
      dlsym(RTLD_DEFAULT, "ucp_get_version"));
  unsigned major = 0, minor = 0, release = 0;
  if (ask) ask(&major, &minor, &release);
  return major > 1 || minor >= 13;
}

// Sends one line to the launcher by PMI-1, MPICH's "simple PMI" (src/pmi/simple of MPICH), and
// reads its answer, another line. False if the launcher does not answer so.
bool ask_launcher(int fd, const std::string& line, const std::string& answer) {
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return false;
  std::string got;
  for (char c = 0; c != '\n'; got += c)
    if (read(fd, &c, 1) != 1) return false;
  return got.starts_with(answer);
}

}  // namespace

// MPICH's ranks of a host meet in a named file (mpich_shar_*) that is there until the last of them
// has come: not if each believes to be alone. UCX finds out by itself who is near, and moves all
// bytes. It names its own memory (ucx_shm_posix_*) while it fills all of it with zeros; that of
// System V loses its name within two calls of the kernel.
void spare_names(bool one_host) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  if (!std::strstr(version, "ch4:ucx")) return;
  if (one_host) setenv("MPIR_CVAR_NOLOCAL", "1", 0);
  if (ucx_can_exclude()) setenv("UCX_TLS", "^posix", 0);
}

// MPICH 4.0 over UCX's TCP does not always return from MPI_Finalize when ranks are on several
// hosts: a rank that closes its connections waits for answers of a peer that waits for the launcher
// already. A rank that has told the launcher that it is through may end without MPI_Finalize; all
// ranks meet before, as they do there.
void finalize(bool several_hosts) {
  const char* fd = several_hosts ? std::getenv("PMI_FD") : nullptr;
  if (fd && ask_launcher(std::atoi(fd), "cmd=barrier_in\n", "cmd=barrier_out") &&
      ask_launcher(std::atoi(fd), "cmd=finalize\n", "cmd=finalize_ack"))
    return;
  MPI_Finalize();
}

}  // namespace mpi

#endif
