// SPDX-License-Identifier: Apache-2.0
//
// The end of the MPI library in this process.
#pragma once

namespace mpi {

// Ends MPI together with the peers. REQUIRES: all ranks have agreed to end and nothing is under
// way. MPICH 4.0 over UCX's TCP does not always return from MPI_Finalize when ranks are on several
// hosts: a rank that closes its connections waits for answers of a peer that waits for the launcher
// already. There the launcher alone is told that the rank ends well.
void finalize(bool several_hosts);

}  // namespace mpi
