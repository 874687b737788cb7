// SPDX-License-Identifier: Apache-2.0
//
// Persistent tensors: parameters, optimizer state, buffers. Programs are variants over states; a
// state outlives every program that reads or writes it.
#pragma once

#include <cstddef>
#include <functional>
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

// The initial value of a state. `uniform`: in [a, b). `normal`: with mean a and standard deviation
// b. `like`: the value that another state has at that time. `stored`: that in a loaded checkpoint.
struct Initial {
  enum Kind { zeros, constant, uniform, normal, data, like, stored } kind = zeros;
  double a = 0, b = 0;
  HostTensor tensor;          // kind data
  std::shared_ptr<State> of;  // kind like
  // Kind stored: reads this rank's part from a checkpoint; and the version that the state had then,
  // 0 if it was not read.
  std::function<void(State&)> read;
  uint64_t read_as = 0;
  // The key of random numbers, fixed when the state is made: the job's seed, and how many states
  // with random values the script has made with that seed before. Names, ranks and the time of the
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

// Copy the part's elements out of the whole tensor, and back into it.
void take_part(const HostTensor& whole, const Part& part, std::byte* to);
void put_part(HostTensor& whole, const Part& part, const std::byte* from);

// How the coordinates' values of a varying state become one value; `refuse`: they cannot.
enum class Leave { mean, sum, first, refuse };

struct State {
  std::string name;  // "blocks.1.qkv.weight"; optimizer state: "optim.<name>.m"
  Type type;
  Role role = Role::param;  // param or state
  Initial initial;
  bool frozen = false;    // params: no gradient, no update
  bool trained = false;   // params: some program of the script trains it
  bool constant = false;  // a tensor of the script; it is not saved in checkpoints
  bool passing = false;   // it has no value between sessions of a driver; it is not saved either
  Site site;
  std::string beside;  // of a state: the parameter that it is updated with, "" if none is known
  // A parameter's compute copy, if programs keep one: its value in the dtype in which forward and
  // backward read it (partition/passes.h). It is not saved in checkpoints. It is made again if the
  // parameter was changed by something other than the programs that keep both.
  std::shared_ptr<State> copy;
  State* copy_of = nullptr;  // of a compute copy: the parameter

  // The part that this rank holds, and by rank those of all ranks; `parts` is empty if all hold the
  // whole. Set when the first program that uses the state is compiled (run/states.h).
  Part part;
  std::vector<Part> parts;
  // The mesh axes on which the state varies (program/varying.h), "" none, and by rank the
  // coordinate whose value the rank has; empty if no program has set it. Readers outside of
  // programs get one value, made by the rule `leave`.
  std::string varying;
  std::vector<int32_t> coordinate_of;
  Leave leave = Leave::mean;
  bool bound = false;    // a compiled program uses the memory, which must not move any more
  uint64_t version = 0;  // grows whenever the value changes, equally on all ranks

  // Where the part lies: at memory->host + offset on the host device, or in Tier::disk at `offset`
  // of the file. States that were made together share one block, which is freed with the last of
  // them.
  Tier tier = Tier::device;
  std::shared_ptr<const orr_memory> memory;
  std::shared_ptr<SpillFile> file;
  uint64_t offset = 0;

  bool lies_somewhere() const { return memory || file; }
};

using StateList = std::vector<std::shared_ptr<State>>;

// The natural order of names: "blocks.2" comes before "blocks.10".
bool natural_less(const std::string& a, const std::string& b);

}  // namespace orrery
