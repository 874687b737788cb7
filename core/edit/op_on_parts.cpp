// SPDX-License-Identifier: Apache-2.0
#include "edit/op_on_parts.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "edit/calls.h"
#include "edit/op_call.h"
#include "plugin/host.h"
#include "program/build.h"

namespace orrery {
namespace {

using Reduce = std::function<ValueId(ValueId x, const std::string& fn)>;

// The handle of a program into which on_parts writes.
struct PartProgram : orr_program {
  Reduce reduce;
};

orr_status* reduce(orr_program* e, int32_t value, const char* fn, int32_t* out) {
  return guarded([&] {
    edit::check_value(e, value);
    const std::string_view name = fn ? fn : "";
    if (name != "sum" && name != "max")
      fail(ORR_INVALID, "reduce by '{}' cannot be: \"sum\" or \"max\"", name);
    *out = static_cast<PartProgram*>(e)->reduce(value, std::string(name));
  });
}

const orr_writer part_writer = {sizeof(orr_writer), write_op, type_of_value, reduce};

std::vector<int> factors_of(const OpCall& call, int32_t input, size_t rank) {
  std::vector<int32_t> found(rank, kNone);
  check(call.api().part_factors(call.api().self, call.op.number, &call.abi, input, found.data()),
        "ops." + call.op.name + ": part_factors");
  return {found.begin(), found.end()};
}

Sharding part_factors_of(const OpCall& call, const std::vector<Type>& in,
                         const std::vector<Type>& out) {
  Sharding s;
  for (size_t i = 0; i < in.size(); ++i)
    s.in.push_back(factors_of(call, static_cast<int32_t>(i), in[i].dims.size()));
  for (size_t j = 0; j < out.size(); ++j)
    s.out.push_back(factors_of(call, -1 - static_cast<int32_t>(j), out[j].dims.size()));
  return s;
}

// How a value of this type lies if it is cut along its dim of the factor; whole without such a dim.
Placement along(const std::vector<int>& factors, int factor, const Type& whole) {
  const auto at = std::find(factors.begin(), factors.end(), factor);
  if (at == factors.end()) return {};
  const auto dim = static_cast<size_t>(at - factors.begin());
  return Placement::along(static_cast<int>(dim), {whole.dims[dim]});
}

std::vector<Placement> along(const std::vector<std::vector<int>>& factors, int factor,
                             const std::vector<Type>& wholes) {
  std::vector<Placement> all;
  for (size_t i = 0; i < wholes.size(); ++i) all.push_back(along(factors[i], factor, wholes[i]));
  return all;
}

// The factor along which an input lies in parts that all have elements; kNone: there is none.
int split_factor(const OnParts& parts, const Op& at, const Sharding& s) {
  for (size_t i = 0; i < at.in.size(); ++i) {
    const Placement& how = parts.at(at.in[i]);
    if (how.kind != Placement::split) continue;
    const auto dim = static_cast<size_t>(how.dim);
    const int factor = s.in[i][dim];
    if (factor != kNone && parts.from.type(at.in[i]).dims[dim] >= parts.me.ranks) return factor;
  }
  return kNone;
}

std::vector<Type> types_of(const Program& p, const std::vector<ValueId>& values) {
  std::vector<Type> types;
  for (ValueId v : values) types.push_back(p.type(v));
  return types;
}

// Calls on_parts for one rank, and checks what it makes against `want`.
std::vector<ValueId> write_part(Program& p, const OpCall& whole, int factor, const Member& me,
                                const std::vector<ValueId>& in, const std::vector<Type>& want,
                                Reduce exchange) {
  const OpCall call(whole.op, types_of(p, in), whole.options);
  const std::string who = "ops." + call.op.name + ": on_parts";
  const orr_op_part part{sizeof part, factor, me.ranks, me.rank, whole.types.data()};
  PartProgram e{op_program(p), std::move(exchange)};
  std::vector<ValueId> made(want.size(), kNone);
  check(call.api().on_parts(call.api().self, call.op.number, &call.abi, &part, &e, &part_writer,
                            in.data(), made.data()),
        p.site().prefix() + who);
  for (size_t j = 0; j < made.size(); ++j) {
    check_made(p, made[j], who);
    if (p.type(made[j]) != want[j])
      p.fail_here(fmt::format("{} made {} on rank {} of {}, where its part of result {} is {}", who,
                              to_string(p.type(made[j])), me.rank, me.ranks, j + 1,
                              to_string(want[j])));
  }
  return made;
}

std::vector<Type> held(const std::vector<Type>& wholes, const std::vector<Placement>& how,
                       const Member& me) {
  std::vector<Type> all;
  for (size_t i = 0; i < wholes.size(); ++i) all.push_back(orrery::held(wholes[i], how[i], me));
  return all;
}

// -- all ranks in one program ---------------------------------------------------------------------

// A rank's sum or maximum that needs those of the others.
struct Wanted {
  ValueId value;
  std::string fn;
};

ValueId combined(Program& p, const std::vector<Wanted>& all, const std::string& who) {
  ValueId x = all[0].value;
  for (size_t r = 1; r < all.size(); ++r) {
    if (all[r].fn != all[0].fn || p.type(all[r].value) != p.type(x))
      p.fail_here(fmt::format("{}: rank 0 reduces {} by {}, rank {} {} by {}", who,
                              to_string(p.type(x)), all[0].fn, r, to_string(p.type(all[r].value)),
                              all[r].fn));
    x = p.pointwise(all[0].fn == "max" ? ORR_FN_MAX : ORR_FN_ADD, {x, all[r].value});
  }
  return x;
}

// Runs `rank` for each of them until every exchange is known: a rank that wants one that is not yet
// is stopped by an error there, and written once more. `known` are those of a round before.
class Rounds {
 public:
  using Rank = std::function<std::vector<ValueId>(int r, const Reduce&)>;
  Rounds(Program& p, std::string who) : p_(p), who_(std::move(who)) {}

  std::vector<std::vector<ValueId>> run(int ranks, const Rank& rank) {
    for (;;) {
      std::vector<std::vector<ValueId>> made;
      std::vector<Wanted> wanted;
      for (int r = 0; r < ranks; ++r) made.push_back(one(r, rank, wanted));
      if (wanted.empty()) return made;
      if (static_cast<int>(wanted.size()) < ranks)
        p_.fail_here(fmt::format("{}: {} of {} ranks reduce {} values, the others more", who_,
                                 static_cast<size_t>(ranks) - wanted.size(), ranks, known_.size()));
      known_.push_back(combined(p_, wanted, who_));
    }
  }

 private:
  std::vector<ValueId> one(int r, const Rank& rank, std::vector<Wanted>& wanted) {
    size_t next = 0;
    bool stopped = false;
    const Reduce exchange = [&](ValueId x, const std::string& fn) {
      if (next < known_.size()) return known_[next++];
      wanted.push_back({x, fn}), stopped = true;
      throw Error(ORR_FAILED, "not yet known");
    };
    try {
      return rank(r, exchange);
    } catch (const Error&) {
      if (!stopped) throw;
      return {};
    }
  }

  Program& p_;
  const std::string who_;
  std::vector<ValueId> known_;
};

ValueId joined(Program& p, std::vector<ValueId> by_rank, const Placement& how) {
  if (how.kind == Placement::split) return build::concat(p, by_rank, how.dim);
  for (ValueId& v : by_rank) {
    Dims dims = p.type(v).dims;
    dims.insert(dims.begin(), 1);
    v = build::reshape(p, v, dims);
  }
  return build::concat(p, by_rank, 0);
}

}  // namespace

Sharding part_factors_of(const PluginOp& op, const std::vector<Type>& in) {
  if (!op.kernel) return {};
  const OpCall call = call_of(op, in, {});
  return part_factors_of(call, in, shapes_of(call, "ops." + op.name));
}

bool run_on_parts(OnParts& parts, const PluginOp& op, const Op& at) {
  // Sums over ranks have other bits than those of whole rows, which `chunks` of an axis promise on
  // any number of ranks (Member::tree).
  if (parts.over_batch || parts.me.tree) return false;
  const std::vector<Type> wholes = args_of(parts.from, at).in, out = out_types(parts.from, at);
  const OpCall call = call_of(op, wholes, at.attrs);
  const Sharding s = part_factors_of(call, wholes, out);
  const int factor = split_factor(parts, at, s);
  if (factor == kNone) return false;
  const std::vector<Placement> to = along(s.in, factor, wholes), how = along(s.out, factor, out);
  std::vector<ValueId> in;
  for (size_t i = 0; i < at.in.size(); ++i) in.push_back(parts.read(at.in[i], to[i]));
  const std::vector<ValueId> made =
      write_part(parts.p, call, factor, parts.me, in, held(out, how, parts.me),
                 [&](ValueId x, const std::string& fn) { return parts.reduced(x, fn.c_str()); });
  for (size_t j = 0; j < made.size(); ++j) parts.become(at.out[j], made[j], how[j]);
  return true;
}

std::vector<ValueId> add_on_parts(Program& p, const PluginOp& op, const std::vector<Attr>& options,
                                  const std::vector<ValueId>& in, int factor, int ranks) {
  const std::vector<Type> wholes = types_of(p, in);
  const OpCall call(op, wholes, options);
  const std::vector<Type> out = shapes_of(call, "ops." + op.name);
  const Sharding s = part_factors_of(call, wholes, out);
  const std::vector<Placement> from = along(s.in, factor, wholes), how = along(s.out, factor, out);
  const auto made =
      Rounds(p, "ops." + op.name + ": on_parts").run(ranks, [&](int r, const Reduce& exchange) {
        const Member me{r, ranks, {}, {}};
        std::vector<ValueId> part = in;
        for (size_t i = 0; i < in.size(); ++i)
          if (from[i].kind == Placement::split) {
            const int64_t n = from[i].segments[0];
            part[i] = build::slice(p, in[i], from[i].dim, me.begin(n), me.end(n));
          }
        return write_part(p, call, factor, me, part, held(out, how, me), exchange);
      });
  std::vector<ValueId> all;
  for (size_t j = 0; j < out.size(); ++j) {
    std::vector<ValueId> by_rank;
    for (const auto& of_rank : made) by_rank.push_back(of_rank[j]);
    all.push_back(joined(p, std::move(by_rank), how[j]));
  }
  return all;
}

}  // namespace orrery
