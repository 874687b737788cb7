// SPDX-License-Identifier: Apache-2.0
#include "lower/kernels/fuse_groups.h"

#include <algorithm>

#include "lower/kernels/joined_ops.h"
#include "partition/timetable.h"

namespace orrery {
namespace {

constexpr uint64_t kSmall = 1 << 20;  // bytes that may be kept for longer

size_t at(ValueId v) { return static_cast<size_t>(v); }
bool per_sample(const Op& op) { return op.phase != Phase::update; }
bool constant(const Op& op) { return op.kind == "pointwise" && op.in.empty(); }
bool are_pointwise(const Op& a, const Op& b) {
  return b.kind == "pointwise" && per_sample(a) == per_sample(b);
}

}  // namespace

FuseGroups::FuseGroups(const LocalProgram& local, const OtherDims& other,
                       const std::vector<char>& pinned)
    : local_(local),
      p_(local.program),
      other_(other),
      pinned_(pinned),
      once_(once_a_step(local.program)) {
  size_t n = p_.ops().size();
  group_.resize(n), size_.resize(n), members_.resize(n), dims_.resize(n), inlined_.resize(n);
  users_.resize(p_.values().size()), kept_.resize(p_.values().size());
  is_whole_.resize(p_.values().size());
  for (const Total& t : local.totals) is_whole_[at(t.whole)] = true;
  for (size_t i = 0; i < n; ++i) {
    group_[i] = i;
    if (op(i).kind == "pointwise") members_[i] = {i}, dims_[i] = dims_of(i), size_[i].add(op(i));
    note_readers(i);
  }
  for (size_t i = n; i-- > 0;)
    if (op(i).kind == "pointwise") join(i);
  for (size_t i = 0; i < n; ++i)
    if (group_[i] == i && !inlined_[i] && !members_[i].empty()) join_before(i);
}

// A reshape is read by those who read its result.
void FuseGroups::note_readers(size_t i) {
  const bool view = op(i).kind == "reshape";
  if (view && !pinned_[at(op(i).out[0])]) return;
  for (ValueId v : op(i).in)
    for (ValueId x = v; x != kNone; x = other_.under(x))
      if (view)
        kept_[at(x)] = true;
      else
        users_[at(x)].push_back(i);
}

void FuseGroups::Size::add(const Op& op) {
  for (const orr_instr& i : op.expr.instrs) computes += i.fn != ORR_FN_INPUT;
  const auto is = [](const auto& values, ValueId v) {
    return std::find(values.begin(), values.end(), v) != values.end();
  };
  inputs.erase(
      std::remove_if(inputs.begin(), inputs.end(), [&](ValueId v) { return is(op.out, v); }),
      inputs.end());
  for (ValueId v : op.in)
    if (!is(inputs, v)) inputs.push_back(v);
}

bool FuseGroups::Size::fits() const {
  return inputs.size() <= kMostInputs && computes + inputs.size() <= kMostInstrs;
}

// Joins op i to a group. A group has the index of its last member, in whose place it runs.
void FuseGroups::join(size_t i) {
  if (constant(op(i)) && is_read_by_groups_alone(i)) {
    inlined_[i] = true;  // cheap to repeat: it is copied into every group that reads it
    return;
  }
  size_t host = SIZE_MAX;  // the first group that it can join
  for (ValueId v : op(i).out)
    for (size_t user : users_[at(v)])
      if (fits(i, user)) host = std::min(host, group_[user]);
  if (host == SIZE_MAX) return;
  for (ValueId v : op(i).out)
    for (size_t user : users_[at(v)])
      if (group_[user] != host && group_[user] <= host) return;
  const Dims* together = dims_with(i, host);
  Size sum = size_[host];
  sum.add(op(i));
  if (!together || !sum.fits()) return;
  size_[host] = std::move(sum);
  dims_[host] = *together;
  members_[host].push_back(i);
  group_[i] = host;
}

// Joins a group to the one that makes the last of what it reads, whose place is earlier. What it
// makes is kept for longer then, so that it must be small.
void FuseGroups::join_before(size_t group) {
  const size_t host = last_maker(group);
  if (host == SIZE_MAX || op(host).kind != "pointwise" || !may_move(group, host)) return;
  const Dims* together = &dims_[host];
  if (!all_may_have(group, *together)) together = &dims_[group];
  Size sum = size_[host];
  for (size_t i : members_[group]) sum.add(op(i));
  if (!all_may_have(group, *together) || !all_may_have(host, *together) || !sum.fits()) return;
  size_[host] = std::move(sum);
  dims_[host] = Dims(*together);
  for (size_t i : members_[group]) group_[i] = host, members_[host].push_back(i);
  members_[group].clear();
}

// The place of what makes the last input of a group; SIZE_MAX if none is made by an op, or one
// may be the result of an exchange.
size_t FuseGroups::last_maker(size_t group) const {
  size_t last = SIZE_MAX;
  for (size_t i : members_[group])
    for (ValueId v : op(i).in) {
      const OpId maker = p_.value(other_.root(v)).producer;
      if (maker == kNone && is_whole_[at(other_.root(v))]) return SIZE_MAX;
      if (maker == kNone || inlined_[at(maker)] || group_[at(maker)] == group) continue;
      last = last == SIZE_MAX ? group_[at(maker)] : std::max(last, group_[at(maker)]);
    }
  return last;
}

bool FuseGroups::may_move(size_t group, size_t host) const {
  uint64_t bytes = 0;
  for (size_t i : members_[group]) {
    if (!fits(host, i) || op(host).phase != op(i).phase || op(host).stage != op(i).stage)
      return false;
    for (ValueId v : op(i).in)
      if (other_.under(v) != kNone && stands_behind(v, host)) return false;
    for (ValueId v : op(i).out) {
      if (pinned_[at(v)]) return false;
      if (is_read_outside(v, group)) bytes += p_.type(v).bytes();
    }
  }
  return bytes <= kSmall;
}

// Whether a reshape stands behind the group and shows something else than what that makes.
bool FuseGroups::stands_behind(ValueId v, size_t group) const {
  const OpId maker = p_.value(other_.root(v)).producer;
  return at(p_.value(v).producer) > group && (maker == kNone || group_[at(maker)] != group);
}

bool FuseGroups::all_may_have(size_t group, const Dims& dims) const {
  const std::vector<size_t>& all = members_[group];
  return std::all_of(all.begin(), all.end(),
                     [&](size_t i) { return other_.may_have(op(i), dims); });
}

// The dims that the group can have with op i: its own, or those of the op; null if neither.
const Dims* FuseGroups::dims_with(size_t i, size_t host) const {
  const Dims& own = dims_[host];
  if (other_.may_have(op(i), own)) return &own;
  return all_may_have(host, dims_of(i)) ? &dims_of(i) : nullptr;
}

bool FuseGroups::is_read_by_groups_alone(size_t i) const {
  bool read = false;
  for (ValueId v : op(i).out) {
    if (pinned_[at(v)] || kept_[at(v)]) return false;
    for (size_t user : users_[at(v)]) {
      if (!are_pointwise(op(i), op(user))) return false;
      read = true;
    }
  }
  return read;
}

// A constant that something else reads, too, has dims of its own.
bool FuseGroups::fits(size_t producer, size_t user) const {
  return are_pointwise(op(producer), op(user)) &&
         p_.type(op(producer).out[0]).elements() == p_.type(op(user).out[0]).elements() &&
         run_together(producer, user);
}

// Whether two ops run in the same call: where microbatches run in a call each, segment and chunk
// must be the same.
bool FuseGroups::run_together(size_t i, size_t k) const {
  const Op &a = op(i), &b = op(k);
  if (!local_.microbatches.one_by_one || !per_sample(a)) return true;
  return a.phase == b.phase && a.stage == b.stage && once_[i] == once_[k];
}

// Whether others than the members of the group read v, or reshapes of it.
bool FuseGroups::is_read_outside(ValueId v, size_t group) const {
  const auto& all = users_[at(v)];
  return pinned_[at(v)] || kept_[at(v)] ||
         std::any_of(all.begin(), all.end(), [&](size_t user) { return group_[user] != group; });
}

}  // namespace orrery
