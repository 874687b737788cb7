// SPDX-License-Identifier: Apache-2.0
//
// What every part of a fake needs: how it ends a program that breaks a rule, its dice, and a count
// of calls. tests/gpu/fake_cuda has this file and those of the device too, under FAKE_NAME.
#pragma once

#include <cstdint>
#include <string>

namespace fake {

// Prints "FAKE_NAME: RULE: detail" with the seed, and aborts the process. [any thread]
[[noreturn]] void misuse(const std::string& rule, const std::string& detail);

// A number below `n`, from the seed in FAKE_NCCL_SEED or else a new one. [any thread]
uint64_t dice(uint64_t n);
uint64_t seed();

// Counts a call of the driver by its name. [any thread]
void note_call(const char* what);
uint64_t calls(const std::string& what);

// Set while the calling thread runs a callback of a stream.
extern thread_local bool in_callback;

}  // namespace fake
