// SPDX-License-Identifier: Apache-2.0
//
// What every part of the fake needs: how it ends a program that breaks a rule, and its dice.
#pragma once

#include <cstdint>
#include <string>

namespace fake {

// Prints "fake NCCL: RULE: detail" with the seed, and aborts the process. [any thread]
[[noreturn]] void misuse(const std::string& rule, const std::string& detail);

// A number below `n`, from the seed in FAKE_NCCL_SEED or else a new one. [any thread]
uint64_t dice(uint64_t n);
uint64_t seed();

// Set while the calling thread runs a callback of a stream.
extern thread_local bool in_callback;

}  // namespace fake
