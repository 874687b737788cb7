// SPDX-License-Identifier: Apache-2.0
#include "finalize.h"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "mpi_header.h"

namespace mpi {
namespace {

#ifndef OPEN_MPI

// Sends one line to the launcher by PMI-1, MPICH's "simple PMI" (src/pmi/simple of MPICH), and
// reads its answer, another line. False if the launcher does not answer so.
bool ask_launcher(int fd, const std::string& line, const std::string& answer) {
  if (write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return false;
  std::string got;
  for (char c = 0; c != '\n'; got += c)
    if (read(fd, &c, 1) != 1) return false;
  return got.starts_with(answer);
}

// A rank that has told the launcher that it is through may end without MPI_Finalize. All ranks meet
// before, as they do in MPI_Finalize.
bool tell_launcher() {
  const char* fd = std::getenv("PMI_FD");
  if (!fd) return false;
  return ask_launcher(std::atoi(fd), "cmd=barrier_in\n", "cmd=barrier_out") &&
         ask_launcher(std::atoi(fd), "cmd=finalize\n", "cmd=finalize_ack");
}

#else

// Open MPI returns from MPI_Finalize.
bool tell_launcher() { return false; }

#endif

}  // namespace

void finalize(bool several_hosts) {
  if (!several_hosts || !tell_launcher()) MPI_Finalize();
}

}  // namespace mpi
