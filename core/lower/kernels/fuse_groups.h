// SPDX-License-Identifier: Apache-2.0
//
// Which pointwise ops become one (fuse.cpp). Groups grow from the last op backwards: an op joins
// the group of an op that reads it, perhaps behind a reshape, and has as many elements, if
// everything else that reads it runs after the group. The group then runs in place of its last
// member, and has the dims that all members may have (lower/kernels/other_dims.h).
#pragma once

#include <boost/container/small_vector.hpp>
#include <vector>

#include "lower/kernels/other_dims.h"

namespace orrery {

class FuseGroups {
 public:
  // Borrows the program. `pinned` is by value (read_from_outside).
  FuseGroups(const LocalProgram& local, const OtherDims& other, const std::vector<char>& pinned);

  // A group has the index of the op in whose place it runs.
  size_t of(size_t op) const { return group_[op]; }
  // Whether an op is a constant that every group that reads it has for itself.
  bool is_inlined(size_t op) const { return inlined_[op]; }
  const std::vector<size_t>& members(size_t group) const { return members_[group]; }
  const Dims& dims(size_t group) const { return dims_[group]; }
  // Whether others than the members of the group read v, or reshapes of it.
  bool is_read_outside(ValueId v, size_t group) const;

 private:
  // What a group reads from memory, and how many instructions compute.
  struct Size {
    size_t computes = 0;
    boost::container::small_vector<ValueId, 4> inputs;  // each once

    void add(const Op& op);  // in front of those that the group has
    bool fits() const;
  };

  const Op& op(size_t i) const { return p_.ops()[i]; }
  const Dims& dims_of(size_t i) const { return p_.type(op(i).out[0]).dims; }
  void note_readers(size_t i);
  void join(size_t i);
  void join_before(size_t group);
  size_t last_maker(size_t group) const;
  bool may_move(size_t group, size_t host) const;
  bool stands_behind(ValueId v, size_t group) const;
  bool all_may_have(size_t group, const Dims& dims) const;
  const Dims* dims_with(size_t i, size_t host) const;
  bool is_read_by_groups_alone(size_t i) const;
  bool fits(size_t producer, size_t user) const;
  bool run_together(size_t i, size_t k) const;

  const LocalProgram& local_;
  const Program& p_;
  const OtherDims& other_;
  const std::vector<char>& pinned_;
  std::vector<size_t> group_;                                     // by op
  std::vector<Size> size_;                                        // by group
  std::vector<std::vector<size_t>> members_;                      // by group
  std::vector<Dims> dims_;                                        // by group
  std::vector<boost::container::small_vector<size_t, 2>> users_;  // by value
  std::vector<char> kept_;        // by value: a reshape of it is read from outside
  std::vector<char> is_whole_;    // by value: an exchange completes it (Total)
  const std::vector<bool> once_;  // by op (once_a_step)
  std::vector<char> inlined_;     // by op
};

}  // namespace orrery
