// SPDX-License-Identifier: Apache-2.0
#include "run/agree.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/collectives.h"
#include "program/state.h"
#include "run/runtime.h"

namespace orrery {

uint64_t program_digest(const Blueprint& b) {
  uint64_t h = 1469598103934665603ULL;
  std::string text = to_string(b.program) + std::to_string(b.microbatches);
  if (b.mesh.fast_sums) text += "fast sums";
  for (const Periodic& one : b.asked.periodic)
    for (const auto& program : one.rounds) text += std::to_string(one.every) + to_string(*program);
  for (const Beside& one : b.asked.driving.programs) text += one.name + to_string(*one.program);
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return h;
}

// A digest of the states' initial values: the keys of random numbers, and the bytes of given
// tensors. Of a state that the script has written since, it has only that fact.
static uint64_t initial_digest(const Program& p) {
  Digest digest;
  for (const auto& s : states_of(p)) {
    const Initial& initial = s->initial;
    const bool changed = s->version > 0;
    digest.add(&changed, sizeof changed);
    if (changed) continue;
    digest.add(&initial.kind, sizeof initial.kind);
    if (initial.is_random()) digest.add(&initial.seed, sizeof initial.seed);
    if (initial.is_random()) digest.add(&initial.ordinal, sizeof initial.ordinal);
    if (initial.tensor.bytes)
      digest.add(initial.tensor.bytes->data(), initial.tensor.bytes->size());
  }
  return digest.number();
}

// The ranks whose number with index `at` differs from rank 0's, as text; "" if none does. Every
// rank has given `each` numbers.
static std::string differing(const HostTensor& all, int64_t at, int64_t each) {
  std::string found;
  for (int r = 1; r < world_info().size; ++r)
    if (all.data<int64_t>()[r * each + at] != all.data<int64_t>()[at])
      found += fmt::format("{}{}", found.empty() ? "" : ", ", r);
  return found;
}

static std::string shapes_of(const BatchFields& batch) {
  std::vector<std::string> fields;
  for (auto& [name, field] : batch) {
    const Dims& dims = field.type.dims;
    const int64_t rows = dims.empty() ? 0 : dims[0];
    fields.push_back(fmt::format("{} row{} of '{}', {}", rows, rows == 1 ? "" : "s", name,
                                 to_string(field.type)));
  }
  return join(fields, ", ");
}

// The texts of all ranks. Collective.
static std::vector<std::string> texts_of_all(const std::string& mine, const std::string& what,
                                             const std::string& line) {
  const std::vector<uint64_t> sizes = numbers_of_all({mine.size()}, what, line);
  const uint64_t room = *std::max_element(sizes.begin(), sizes.end());
  HostTensor text = HostTensor::make({ORR_U8, {static_cast<int64_t>(room)}});
  std::copy(mine.begin(), mine.end(), text.data<char>());
  const HostTensor all = world_allgather(text, line);
  std::vector<std::string> texts;
  for (size_t r = 0; r < sizes.size(); ++r)
    texts.emplace_back(all.data<char>() + r * room, sizes[r]);
  return texts;
}

// Of ranks that know of a difference already, which this may explain. Collective.
static void compare_shapes(const BatchFields& batch, const std::string& line) {
  const std::vector<std::string> all = texts_of_all(shapes_of(batch), "shapes of a batch", line);
  std::map<std::string, std::string> ranks;  // which have the same, "0, 2"
  for (size_t r = 0; r < all.size(); ++r)
    ranks[all[r]] += fmt::format("{}{}", ranks[all[r]].empty() ? "" : ", ", r);
  if (ranks.size() == 1) return;
  std::string given;
  for (auto& [shapes, its] : ranks)
    given += fmt::format("{}rank {}: {}", given.empty() ? "" : "; ", its, shapes);
  fail(ORR_FAILED,
       "{}: the ranks were given batches of different sizes ({}): every rank names the whole batch "
       "and loads its own rows of it, so give all ranks the same rows, such as those of "
       "data:batches with the same options",
       line, given);
}

void compare_across_ranks(const Blueprint& b, const BatchFields& batch, const std::string& line) {
  const uint64_t digests[] = {program_digest(b), initial_digest(b.program)};
  HostTensor mine = HostTensor::make({ORR_I64, {2}});
  std::memcpy(mine.bytes->data(), digests, sizeof digests);
  HostTensor all = world_allgather(mine, line);
  const std::string programs = differing(all, 0, 2);
  if (!programs.empty()) compare_shapes(batch, line);
  if (!programs.empty())
    fail(ORR_FAILED,
         "{}: the ranks have traced different programs: rank {} differs from rank 0; a "
         "script must build the same model on all ranks (does it branch on world.rank?)",
         line, programs);
  if (std::string differ = differing(all, 1, 2); !differ.empty())
    fail(ORR_FAILED,
         "{}: the parameters of rank {} begin with other values than those of rank 0: give "
         "orrery.seed the same number and make the same parameters, in the same order, on all "
         "ranks",
         line, differ);
}

// A digest of which samples these are, and of their shapes.
static int64_t digest_of(const BatchFields& batch) {
  uint64_t h = 0;
  for (auto& [name, field] : batch) {
    for (int64_t d : field.type.dims) h = h * 31 + static_cast<uint64_t>(d);
    h = h * 31 + field.identity;
  }
  return static_cast<int64_t>(h);
}

void agree_on_step(StepAgreement& m, const BatchFields& batch, const std::string& line) {
  // One all-reduce with the maximum does it all. It keeps rank 0's numbers, because the other ranks
  // give the smallest integer in their place. Of x and ~x, the maxima are each other's complement
  // only if all ranks have given the same x.
  const int64_t alike[] = {m.step, static_cast<int64_t>(m.seed), digest_of(batch)};
  std::vector<int64_t> sent = {m.written, m.failed, m.saving};
  for (int64_t x : alike) sent.insert(sent.end(), {x, ~x});
  for (auto& [name, value] : m.numbers)
    sent.push_back(world_info().rank == 0 ? std::bit_cast<int64_t>(value) : INT64_MIN);
  HostTensor all = HostTensor::make({ORR_I64, {static_cast<int64_t>(sent.size())}});
  std::copy(sent.begin(), sent.end(), all.data<int64_t>());
  all = world_allreduce(all, "max", line + ", scalars of the step");
  const int64_t* x = all.data<int64_t>();
  m.written = *x++ != 0, m.failed = *x++ != 0, m.saving = *x++ != 0;
  for (const char* what :
       {"are at different steps: all must load and train alike",
        "have different seeds: all must load the same checkpoint",
        "were given different batches: every rank names the whole batch, from the same shard, seed "
        "and step of data:batches, and loads its own rows of it"}) {
    if (!m.failed && x[0] != ~x[1]) {
      compare_shapes(batch, line);
      fail(ORR_FAILED, "{}: step {}: the ranks {}", line, m.step, what);
    }
    x += 2;
  }
  for (auto& [name, value] : m.numbers) value = std::bit_cast<double>(*x++);
}

// The text of a rank, which all ranks know to have `size` bytes.
static std::string text_of(int rank, uint64_t size, const std::string& mine,
                           const std::string& line) {
  HostTensor text = HostTensor::make({ORR_U8, {static_cast<int64_t>(size)}});
  if (world_info().rank == rank) std::copy(mine.begin(), mine.end(), text.data<char>());
  text = world_broadcast(text, rank, line);
  return {text.data<char>(), text.bytes->size()};
}

void fail_together(const std::string& error, const std::string& what, const std::string& line) {
  const std::vector<uint64_t> sizes = numbers_of_all({error.size()}, what, line);
  const auto first = std::find_if(sizes.begin(), sizes.end(), [](uint64_t n) { return n > 0; });
  if (first == sizes.end()) return;
  const int rank = static_cast<int>(first - sizes.begin());
  const std::string said = text_of(rank, *first, error, line);
  if (world_info().rank == rank) throw Error(ORR_FAILED, error);
  throw Error(ORR_FAILED, fmt::format("rank {}: {}", rank, said));
}

std::string text_of_rank_0(const std::string& text, const std::string& what) {
  const uint64_t size = numbers_of_all({text.size()}, what, "").front();
  return size ? text_of(0, size, text, "") : "";
}

std::vector<uint64_t> numbers_of_all(const std::vector<uint64_t>& mine, const std::string& what,
                                     const std::string& line) {
  CollectiveCall call;
  call.kind = Collective::allgather, call.name = what, call.line = line;
  call.tensors = {HostTensor::make({ORR_I64, {static_cast<int64_t>(mine.size())}})};
  std::copy(mine.begin(), mine.end(), call.tensors[0].data<uint64_t>());
  const PostedCollective posted = post(Runtime::get().comm(), std::move(call));
  const HostTensor& all = posted.wait().tensors.front();
  return {all.data<uint64_t>(), all.data<uint64_t>() + all.type.elements()};
}

}  // namespace orrery
