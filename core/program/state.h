// SPDX-License-Identifier: Apache-2.0
//
// Persistent tensors: parameters, optimizer state, buffers. Programs are variants over states; a
// state outlives every program that reads or writes it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "program/program.h"

namespace orrery {

class SpillFile;  // store/spill_file.h

// A concrete tensor in ordinary memory, row-major. Copies share the bytes.
struct HostTensor {
  Type type;
  std::shared_ptr<std::vector<std::byte>> bytes;

  static HostTensor make(const Type& type);  // zeroed
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(bytes->data());
  }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes->data());
  }
};

struct State;

// How a state begins. `uniform` is [a, b); `normal` has mean a and deviation b; `like` has what
// another state holds then.
struct Initial {
  enum Kind { zeros, constant, uniform, normal, data, like } kind = zeros;
  double a = 0, b = 0;
  HostTensor tensor;             // kind data
  std::vector<HostTensor> each;  // kind data, of a state that varies: one for each coordinate
  std::shared_ptr<State> of;     // kind like
  // What random numbers are keyed by, both fixed when the state is made: the job's seed, and how
  // many states with random numbers the script has made with it. Names, ranks and the moment of the
  // first read do not matter.
  uint64_t seed = 1;
  int64_t ordinal = 0;

  static Initial of_data(const HostTensor& value) {
    Initial initial;
    initial.kind = data, initial.tensor = value;
    return initial;
  }
  static Initial of_constant(double value) {
    Initial initial;
    initial.kind = constant, initial.a = value;
    return initial;
  }
  bool is_random() const { return kind == uniform || kind == normal; }
};

// The part's elements out of the whole tensor, and back into it.
void take_part(const HostTensor& whole, const Part& part, std::byte* to);
void put_part(HostTensor& whole, const Part& part, const std::byte* from);

// How the values of a state that varies become one.
enum class Leave { mean, sum, first, refuse };

struct State {
  std::string name;  // "blocks.1.qkv.weight"; optimizer state: "optim.<name>.m"
  Type type;
  Role role = Role::param;  // param or state
  Initial initial;
  bool frozen = false;    // params: no gradient, no update
  bool trained = false;   // params: some program of the script trains it
  bool constant = false;  // a tensor of the script's: belongs to no checkpoint
  bool passing = false;   // holds nothing between sessions of a driver: neither does this
  Site site;
  std::string beside;  // states: the parameter that it is updated with, "" if none is known
  // A parameter's compute copy: its value in the dtype in which forward and backward read it, where
  // programs keep that (partition/passes.h). It belongs to no checkpoint: it is made of the
  // parameter again where that was changed by others than the programs that keep both.
  std::shared_ptr<State> copy;
  State* copy_of = nullptr;  // of a compute copy: the parameter

  // What this rank holds, and every rank of the world, by rank; `parts` is empty while all hold the
  // whole. Decided when the first program that uses the state is compiled (run/states.h).
  Part part;
  std::vector<Part> parts;
  // The mesh axes on which every coordinate has a value of its own (program/varying.h), "" none,
  // and by rank of the world the coordinate whose value it has; empty while no program says. Who
  // reads the state from outside of programs gets one value, made as `leave` says.
  std::string varying;
  std::vector<int32_t> coordinate_of;
  Leave leave = Leave::mean;
  bool bound = false;    // a compiled program works on the memory: it stays where it is
  uint64_t version = 0;  // grows whenever the value changes, alike on all ranks

  // Where the part lives: at memory->host + offset on the host device. States that were made
  // together share one block, freed with the last of them. In Tier::disk: at `offset` of the file.
  Tier tier = Tier::device;
  std::shared_ptr<const orr_memory> memory;
  std::shared_ptr<SpillFile> file;
  uint64_t offset = 0;

  bool lies_somewhere() const { return memory || file; }
};

using StateList = std::vector<std::shared_ptr<State>>;

// Orders names as people do: "blocks.2" before "blocks.10".
bool natural_less(const std::string& a, const std::string& b);

}  // namespace orrery
