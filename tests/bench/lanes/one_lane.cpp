// SPDX-License-Identifier: Apache-2.0
//
// The backend `local` without its word that several exchanges may be in progress at once.
#include <orrery/comm.h>

#define ORR_COMM_CONCURRENT 0u
#include "../../../plugins/comm/local/plugin.cpp"
