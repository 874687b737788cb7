// SPDX-License-Identifier: Apache-2.0
//
// Gives every value a place: shape ops become views, parts of a concat are written where they
// belong, updates are written into the state they replace; then asks the kernel plugins for each
// op and inserts copies where a kernel wants its input contiguous.
#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "lower/abi_op.h"
#include "lower/lower.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {

namespace {

bool is_view(const std::string& kind) {
  return kind == "reshape" || kind == "transpose" || kind == "split";
}

std::vector<orr_tensor> abi(const std::vector<Layout>& layouts) {
  std::vector<orr_tensor> out;
  for (const Layout& x : layouts) out.push_back(x.abi());
  return out;
}

class Placer {
 public:
  explicit Placer(RankPlan& plan) : plan_(plan), p_(plan.local.program) {
    plan_.places.assign(p_.values().size(), {});
    for (const Total& t : plan_.local.totals) {
      nodes_[t.partial] = plan_.local.nodes;
      if (plan_.local.nodes == 1) same_[t.whole] = t.partial;
    }
    for (auto& [state, next] : p_.updates()) next_state_[next] = state;
    for (size_t i = 0; i < p_.ops().size(); ++i)
      for (ValueId v : p_.ops()[i].in) last_read_[v] = static_cast<int>(i);
    for (size_t i = p_.ops().size(); i-- > 0;)  // reading a view is reading what it shows
      if (const Op& op = p_.ops()[i]; is_view(op.kind))
        for (ValueId v : op.out)
          last_read_[op.in[0]] = std::max(last_read_[op.in[0]], last_read_[v]);
  }

  void run() {
    for (size_t i = 0; i < p_.values().size(); ++i)
      if (p_.values()[i].producer == kNone) place_input(static_cast<ValueId>(i));
    reserve_concats();
    for (size_t i = 0; i < p_.ops().size(); ++i) place_op(i);
    for (auto& [state, next] : p_.updates()) finish_update(state, next);
  }

  void add_copy(const Op& reason, const Place& from, const Place& to) {
    Op copy;
    copy.kind = "pointwise", copy.phase = reason.phase, copy.site = reason.site;
    copy.expr.outputs = {copy.expr.push(ORR_FN_INPUT, from.layout.dtype, 0)};
    add_launch(copy, {from}, {to});
  }

 private:
  Place& place(ValueId v) {
    Place& at = plan_.places[static_cast<size_t>(v)];
    if (at.storage == kNone)
      if (auto alias = same_.find(v); alias != same_.end()) at = place(alias->second);
    return at;
  }

  int new_storage(uint64_t bytes, const std::string& category) {
    Storage s;
    s.bytes = bytes, s.category = category;
    plan_.storages.push_back(s);
    return static_cast<int>(plan_.storages.size()) - 1;
  }

  void place_input(ValueId v) {
    const Value& value = p_.value(v);
    if (same_.count(v)) return;  // a total that is its own partial
    Place& at = plan_.places[static_cast<size_t>(v)];
    at.layout = Layout::contiguous(value.type);
    bool total = std::any_of(plan_.local.totals.begin(), plan_.local.totals.end(),
                             [&](const Total& t) { return t.whole == v; });
    at.storage = new_storage(value.type.bytes(), total ? "gradient" : "input");
    if (value.state) {
      Storage& s = plan_.storages.back();
      s.region = Region::state, s.state = value.state;
      s.category = value.role == Role::param ? "parameter" : "state";
    }
  }

  std::string category(ValueId v) const {
    if (nodes_.count(v)) return "gradient";
    return p_.value(v).type.dims.empty() ? "metric" : "activation";
  }

  // Parts of a concat that only the concat reads, and that one op makes alone, are written into it.
  void reserve_concats() {
    std::map<ValueId, int> reads;
    for (const Op& op : p_.ops())
      for (ValueId v : op.in) ++reads[v];
    for (const Op& op : p_.ops()) {
      if (op.kind != "concat") continue;
      size_t dim = static_cast<size_t>(attr_int(op.attrs, "dim", 0));
      Layout whole = Layout::contiguous(p_.type(op.out[0]));
      int64_t begin = 0;
      for (ValueId part : op.in) {
        Layout view = whole;
        view.dims = p_.type(part).dims;
        uint64_t offset = static_cast<uint64_t>(begin * whole.strides[dim] *
                                                orr_dtype_bytes(whole.dtype));
        begin += view.dims[dim];
        OpId maker = p_.value(part).producer;
        bool alone = maker != kNone && reads[part] == 1 && !nodes_.count(part) &&
                     !next_state_.count(part) && !is_view(p_.ops()[static_cast<size_t>(maker)].kind);
        if (alone) wanted_[part] = {op.out[0], offset, view};
      }
    }
  }

  void place_op(size_t i) {
    const Op op = p_.ops()[i];
    if (is_view(op.kind) && place_view(op)) return;
    if (is_view(op.kind)) return copy_view(op, static_cast<int>(i));
    if (op.kind == "concat") return place_concat(op);
    std::vector<Place> in;
    for (ValueId v : op.in) in.push_back(place(v));
    std::vector<Place> out;
    for (ValueId v : op.out) out.push_back(output_place(v, static_cast<int>(i)));
    add_launch(op, in, out);
  }

  // The place where an op writes: inside a concat, over the state it replaces, or fresh.
  Place output_place(ValueId v, int op_index) {
    Place& at = plan_.places[static_cast<size_t>(v)];
    at.layout = Layout::contiguous(p_.type(v));
    if (auto w = wanted_.find(v); w != wanted_.end()) {
      Place& whole = concat_place(w->second.into);
      at = {whole.storage, whole.offset + w->second.offset, w->second.view};
    } else if (auto s = next_state_.find(v); s != next_state_.end() && in_place(v, s->second, op_index)) {
      at = place(s->second);
    } else {
      uint64_t nodes = nodes_.count(v) ? static_cast<uint64_t>(nodes_[v]) : 1;
      at.storage = new_storage(p_.type(v).bytes() * nodes, category(v));
    }
    return at;
  }

  // An update may be written over the old value if nobody reads the old value afterwards and its
  // maker works elementwise (or does not read it).
  bool in_place(ValueId, ValueId state, int op_index) const {
    auto last = last_read_.find(state);
    if (last == last_read_.end() || last->second < op_index) return true;
    return last->second == op_index && p_.ops()[static_cast<size_t>(op_index)].kind == "pointwise" &&
           p_.type(p_.ops()[static_cast<size_t>(op_index)].out[0]).dims == p_.type(state).dims;
  }

  Place& concat_place(ValueId v) {
    Place& at = plan_.places[static_cast<size_t>(v)];
    if (at.storage == kNone) {
      at.layout = Layout::contiguous(p_.type(v));
      at.storage = new_storage(p_.type(v).bytes(), category(v));
    }
    return at;
  }

  void place_concat(const Op& op) {
    Place whole = concat_place(op.out[0]);
    size_t dim = static_cast<size_t>(attr_int(op.attrs, "dim", 0));
    int64_t begin = 0;
    for (ValueId part : op.in) {
      Place to = whole;
      to.layout.dims = p_.type(part).dims;
      to.offset += static_cast<uint64_t>(begin * whole.layout.strides[dim] *
                                         orr_dtype_bytes(whole.layout.dtype));
      begin += to.layout.dims[dim];
      if (!wanted_.count(part)) add_copy(op, place(part), to);
    }
  }

  bool place_view(const Op& op) {
    const Place& x = place(op.in[0]);
    if (op.kind == "split") {
      size_t dim = static_cast<size_t>(attr_int(op.attrs, "dim", 0));
      uint64_t offset = x.offset;
      for (ValueId v : op.out) {
        Place part{x.storage, offset, x.layout};
        part.layout.dims = p_.type(v).dims;
        offset += static_cast<uint64_t>(part.layout.dims[dim] * x.layout.strides[dim] *
                                        orr_dtype_bytes(x.layout.dtype));
        plan_.places[static_cast<size_t>(v)] = part;
      }
      return !std::any_of(op.out.begin(), op.out.end(), [&](ValueId v) { return pinned(v); });
    }
    if (pinned(op.out[0])) return false;
    Place view{x.storage, x.offset, x.layout};
    if (op.kind == "transpose") {
      Dims perm = attr_ints(op.attrs, "perm");
      for (size_t i = 0; i < perm.size(); ++i) {
        view.layout.dims[i] = x.layout.dims[static_cast<size_t>(perm[i])];
        view.layout.strides[i] = x.layout.strides[static_cast<size_t>(perm[i])];
      }
    } else if (!reshape_layout(x.layout, p_.type(op.out[0]).dims, view.layout)) {
      return false;
    }
    plan_.places[static_cast<size_t>(op.out[0])] = view;
    return true;
  }

  // Values that must own contiguous memory of their own.
  bool pinned(ValueId v) const { return next_state_.count(v) || nodes_.count(v); }

  static bool reshape_layout(const Layout& x, const Dims& dims, Layout& out) {
    if (x.is_contiguous()) {
      out = Layout::contiguous({x.dtype, dims});
      return true;
    }
    out = {x.dtype, dims, Dims(dims.size(), 1)};
    size_t i = 0, j = 0;
    while (i < x.dims.size() || j < dims.size()) {
      size_t i0 = i, j0 = j;
      int64_t a = i < x.dims.size() ? x.dims[i++] : 1, b = j < dims.size() ? dims[j++] : 1;
      while (a != b) {
        if (a < b && i < x.dims.size()) a *= x.dims[i++];
        else if (j < dims.size()) b *= dims[j++];
        else return false;
      }
      int64_t dim, stride;
      if (!merge_dims(x, i0, i, dim, stride)) return false;
      for (size_t k = j; k-- > j0; stride *= dims[k]) out.strides[k] = stride;
    }
    return true;
  }

  // A shape op that cannot be a view: its elements move.
  void copy_view(const Op& op, int op_index) {
    if (op.kind == "split") {
      for (ValueId v : op.out) {
        Place from = plan_.places[static_cast<size_t>(v)];
        plan_.places[static_cast<size_t>(v)] = {};
        add_copy(op, from, output_place(v, op_index));
      }
      return;
    }
    Place from = place(op.in[0]);
    Place to = output_place(op.out[0], op_index);
    if (op.kind == "transpose") {
      Dims perm = attr_ints(op.attrs, "perm");
      Layout view = from.layout;
      for (size_t i = 0; i < perm.size(); ++i) {
        view.dims[i] = from.layout.dims[static_cast<size_t>(perm[i])];
        view.strides[i] = from.layout.strides[static_cast<size_t>(perm[i])];
      }
      from.layout = view;
    } else {
      to.layout = Layout::contiguous({from.layout.dtype, from.layout.dims});
    }
    add_copy(op, from, to);
  }

  void add_launch(const Op& op, std::vector<Place> in, const std::vector<Place>& out) {
    Launch launch;
    launch.op = op;
    for (int attempt = 0;; ++attempt) {
      std::vector<Layout> ins, outs;
      for (const Place& x : in) ins.push_back(x.layout);
      for (const Place& x : out) outs.push_back(x.layout);
      KernelForm form = op_def(op.kind).form(op, ins, outs);
      std::set<int> copies(form.copy.begin(), form.copy.end());
      if (copies.empty()) {
        launch.in = abi(form.in), launch.out = abi(form.out);
        orr_support support = choose(launch);
        for (size_t i = 0; i < form.in.size(); ++i)
          if (!form.in[i].is_contiguous() && !(support.strided_in >> i & 1))
            copies.insert(static_cast<int>(i));
        bool out_fits = form.out_ok;
        for (size_t i = 0; i < form.out.size(); ++i)
          out_fits = out_fits && (form.out[i].is_contiguous() || (support.strided_out >> i & 1));
        if (copies.empty() && !out_fits) return launch_beside(op, in, out);
      }
      if (copies.empty()) break;
      if (attempt > 2) fail(ORR_FAILED, "{}{}: no layout suits the kernel", op.site.prefix(), op.kind);
      for (int i : copies) in[static_cast<size_t>(i)] = contiguous_copy(op, in[static_cast<size_t>(i)]);
    }
    launch.in_at = std::move(in), launch.out_at = out;
    finish_launch(std::move(launch));
  }

  Place contiguous_copy(const Op& reason, const Place& from) {
    Type type{from.layout.dtype, from.layout.dims};
    Place to{new_storage(type.bytes(), "activation"), 0, Layout::contiguous(type)};
    add_copy(reason, from, to);
    return to;
  }

  // The kernel cannot write with strides: it writes beside, a copy follows.
  void launch_beside(const Op& op, const std::vector<Place>& in, const std::vector<Place>& out) {
    std::vector<Place> beside;
    for (const Place& x : out) {
      Type type{x.layout.dtype, x.layout.dims};
      beside.push_back(x.layout.is_contiguous()
                           ? x
                           : Place{new_storage(type.bytes(), "activation"), 0, Layout::contiguous(type)});
    }
    add_launch(op, in, beside);
    for (size_t i = 0; i < out.size(); ++i)
      if (beside[i].storage != out[i].storage) add_copy(op, beside[i], out[i]);
  }

  // The best kernel plugin for the launch; an error that lists every plugin's reason if none.
  orr_support choose(Launch& launch) {
    orr_support best{};
    std::string reasons;
    AbiOp op(launch);
    for (size_t k = 0; k < plan_.kernel_names.size(); ++k) {
      const orr_kernel_api& api = Registry::get().kernel(plan_.kernel_names[k]);
      orr_support s{};
      s.size = sizeof s;
      api.supports(api.self, op.get(), &s);
      if (s.score > best.score) best = s, launch.kernels = static_cast<int>(k);
      if (!s.score) reasons += fmt::format("\n  {}: {}", plan_.kernel_names[k], s.reason);
    }
    if (!best.score)
      fail(ORR_UNAVAILABLE, "{}no kernel plugin computes {}{}", launch.op.site.prefix(),
           launch.op.kind, reasons);
    launch.numerics = best.numerics;
    return best;
  }

  void finish_launch(Launch launch) {
    const orr_kernel_api& api =
        Registry::get().kernel(plan_.kernel_names[static_cast<size_t>(launch.kernels)]);
    orr_kernel_size size{};
    size.size = sizeof size;
    AbiOp op(launch);
    check(api.measure(api.self, op.get(), &size), launch.op.site.prefix() + launch.op.kind);
    if (size.workspace) launch.workspace = new_storage(size.workspace, "workspace");
    OpArgs args{launch.op.kind, launch.op.attrs, launch.op.expr, {}};
    std::vector<Type> outs;
    for (const Place& x : launch.in_at) args.in.push_back({x.layout.dtype, x.layout.dims});
    for (const Place& x : launch.out_at) outs.push_back({x.layout.dtype, x.layout.dims});
    launch.cost = op_def(launch.op.kind).cost(args, outs);
    plan_.launches.push_back(std::move(launch));
  }

  // Updates that could not be written in place are copied over the state at the end.
  void finish_update(ValueId state, ValueId next) {
    Place from = place(next), to = place(state);
    if (from.storage == to.storage && from.offset == to.offset) return;
    Op reason;
    reason.phase = Phase::update, reason.site = p_.value(next).site;
    if (from.layout.dims.empty()) from.layout.strides.clear();
    add_copy(reason, from, to);
  }

  struct Inside {
    ValueId into;
    uint64_t offset;
    Layout view;
  };

  RankPlan& plan_;
  Program& p_;
  std::map<ValueId, int64_t> nodes_;
  std::map<ValueId, ValueId> same_, next_state_;
  std::map<ValueId, Inside> wanted_;
  std::map<ValueId, int> last_read_;
};

}  // namespace

void place_values(RankPlan& plan) { Placer(plan).run(); }

std::vector<Launch> copy_launches(RankPlan& plan, const Op& reason, const Place& from, const Place& to) {
  RankPlan beside;
  beside.kernel_names = plan.kernel_names;
  beside.storages = std::move(plan.storages);
  Placer(beside).add_copy(reason, from, to);
  plan.storages = std::move(beside.storages);
  return std::move(beside.launches);
}

}  // namespace orrery
