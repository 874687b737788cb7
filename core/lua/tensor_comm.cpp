// SPDX-License-Identifier: Apache-2.0
//
// Collectives as methods of tensors: over a mesh axis, in strategies, optimizers and models.
#include "lua/call.h"
#include "program/build.h"
#include "program/build_comm.h"
#include "program/own_rows.h"

namespace orrery::lua {
namespace {

// The tensor's dim that the option gives, 0-based; 0 for a scalar.
int64_t dim_of(const Program& p, ValueId x, const Table& options, const char* name) {
  const size_t rank = p.type(x).dims.size();
  return rank ? to_dim(options.integer(name), rank) : 0;
}

ValueId all_reduce(Program& p, ValueId x, const std::string& axis, const std::string& fn) {
  if (fn != "sum" && fn != "mean" && fn != "min" && fn != "max")
    fail(ORR_INVALID, "all_reduce: there is no op '{}'; there are sum, mean, min, max", fn);
  return build::all_reduce(p, x, axis, fn);
}

ValueId all_gather(Program& p, ValueId x, const std::string& axis, const Table& options) {
  return build::all_gather(p, x, axis, dim_of(p, x, options, "dim"));
}

ValueId reduce_scatter(Program& p, ValueId x, const std::string& axis, const Table& options) {
  return build::reduce_scatter(p, x, axis, dim_of(p, x, options, "dim"));
}

ValueId all_to_all(Program& p, ValueId x, const std::string& axis, const Table& options) {
  return build::all_to_all(p, x, axis, dim_of(p, x, options, "split"),
                           dim_of(p, x, options, "concat"));
}

ValueId ppermute(Program& p, ValueId x, const std::string& axis, const Table& options) {
  if (!options.has("to")) return build::permute(p, x, axis, options.integer("hop"));
  return build::permute(p, x, axis, options.integers("to"));
}

ValueId pbroadcast(Program& p, ValueId x, const std::string& axis, int64_t root) {
  return build::broadcast(p, x, axis, root);
}

int64_t axis_size(Program& p, const std::string& axis) { return p.axis_size(axis); }

// Each sample's own row of a value [batch, ...] that is one for all.
ValueId for_each_sample(Program& p, ValueId x) {
  const int64_t batch = p.batch_size();
  if (!batch || p.value(x).batch() == Batch::sharded) return x;
  const Type type = p.type(x);
  if (type.dims.empty() || type.dims[0] != batch)
    p.fail_here(
        fmt::format("for_each_sample: {} has no row for each of the {} samples: its first dim must "
                    "be that long",
                    to_string(type), batch));
  return own_rows(p, p.completed(x));
}

}  // namespace

std::vector<Api> comm_api() {
  return {
      {"Tensor:all_reduce(axis: string, op: string = 'sum') -> Tensor; The sum, mean, min or max "
       "over the ranks of a mesh axis, on all of them. The tensor varies: each rank has one of its "
       "own.",
       call<all_reduce>},
      {"Tensor:all_gather(axis: string, options?) -> Tensor; The ranks' tensors one after another "
       "along a dim, on all ranks of the axis. Over \"batch\": the rows of all samples, on "
       "whatever ranks and in whatever microbatches they are, as one tensor that every sample may "
       "read, with its gradient. "
       "@option dim: integer = 1; along which they are joined; scalars make a list",
       call<all_gather>},
      {"Tensor:reduce_scatter(axis: string, options?) -> Tensor; Of the sum over the ranks of an "
       "axis this rank's share of a dim. "
       "@option dim: integer = 1; that is dealt to the ranks",
       call<reduce_scatter>},
      {"Tensor:all_to_all(axis: string, options?) -> Tensor; Deals `split` to the ranks of an axis "
       "and joins what comes from them along `concat`. "
       "@option split: integer = 1; the dim that is dealt "
       "@option concat: integer = 1; the dim that is joined",
       call<all_to_all>},
      {"Tensor:ppermute(axis: string, options?) -> Tensor; What another rank of the axis has: each "
       "sends its tensor on. "
       "@option hop: integer = 1; to the rank so many further, round in a ring "
       "@option to?: integers; instead: the coordinate, from 0, that each sends to",
       call<ppermute>},
      {"Tensor:pbroadcast(axis: string, root: integer = 0) -> Tensor; The tensor of one rank of "
       "the "
       "axis, on all of them.",
       call<pbroadcast>},
      {"Tensor:vary(axis: string) -> Tensor; The same numbers as a tensor of each rank's own on "
       "the "
       "axis.",
       call<build::vary>},
      {"orrery.axis_size(axis: string) -> integer; How many ranks a mesh axis has.",
       call<axis_size>},
      {"orrery.coordinate(axis: string) -> Tensor; This rank's number on a mesh axis, from 0: i64, "
       "differs by rank.",
       call<build::coordinate>},
      {"Tensor:for_each_sample() -> Tensor; Of a tensor [batch, ...] that is one for all samples, "
       "such as a table that the script holds, each sample's own row. Needed only where "
       "the rows are told apart by more than their place; in functions without a batch it is the "
       "tensor.",
       call<for_each_sample>},
      {"orrery.sample_index() -> Tensor; Each sample's number in the batch, from 0: i64, one for "
       "each sample. The row of x:all_gather(\"batch\") that is its own, as a label.",
       call<build::sample_index>},
  };
}

}  // namespace orrery::lua
