// SPDX-License-Identifier: Apache-2.0
//
// The library's header without its C++ bindings, which are gone from the standard.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <mpi.h>
#pragma GCC diagnostic pop
