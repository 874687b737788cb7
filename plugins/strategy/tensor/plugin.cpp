// SPDX-License-Identifier: Apache-2.0
//
// Tensor parallelism: the ranks of an axis share the work on every sample. A linear layer is cut by
// its outputs (column), and the layer that reads its result is cut by its inputs (row), so that
// nothing travels between the two. Shoeybi et al., "Megatron-LM", 2019. The option `sequence`:
// Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", MLSys 2023.
#include <algorithm>
#include <set>

#include <orrery/sdk/path.hpp>
#include <orrery/sdk/strategy.hpp>
#include <orrery/sdk/traffic.hpp>

#include "linears.h"

namespace {

using tensor::Finder;
using tensor::Linear;

constexpr orr_option kOptions[] = {
    {"size", ORR_ATTR_INT, 0, "0", "ranks that share every sample; 0: all that are left"},
    {"column", ORR_ATTR_TEXT, 0, "", "linear layers cut by outputs; with row left out: found"},
    {"row", ORR_ATTR_TEXT, 0, "", "linear layers cut by inputs"},
    {"sequence", ORR_ATTR_INT, 0, "0", "whether norms and dropouts work on parts of the sequence"},
    {"vocab", ORR_ATTR_INT, 0, "1", "whether embedding and loss are cut by the vocabulary"},
    {"chunks", ORR_ATTR_INT, 0, "0", "partial sums of every sum over a cut dim; 0: one a rank"},
};

orr_status* describe(void*, orr_strategy_info* out) {
  return orr::guard([&] {
    out->numeric_class = ORR_CLASS_APPROX;
    out->n_options = 6, out->options = kOptions;
    out->provides = "a tensor axis", out->requires_ = "", out->conflicts = "a tensor axis";
  });
}

// Returns the layers that a list of patterns matches. Throws if a pattern matches none.
std::set<size_t> named(const Finder& found, const char* option, const char* list) {
  std::set<size_t> layers;
  for (const std::string& pattern : orr::path::cut(list, ',')) {
    bool any = false;
    std::string all;
    for (size_t l = 0; l < found.linears().size(); ++l) {
      const std::string& path = found.linears()[l].path;
      all += (all.empty() ? "" : ", ") + path;
      if (orr::path::front(pattern, path).empty()) continue;
      layers.insert(l), any = true;
    }
    if (!any)
      throw orr::Error(ORR_INVALID,
                       std::string(option) + " '" + pattern +
                           "' matches no linear layer; there are: " + (all.empty() ? "none" : all));
  }
  return layers;
}

class Cutter {
 public:
  Cutter(orr_program* program, const orr_edit* edit, const Finder& found, int64_t size,
         int64_t chunks)
      : program_(program),
        edit_(edit),
        found_(found),
        size_(size),
        parts_(std::max(size, chunks)) {}

  void column(const Linear& l, bool even) {
    cut(l, l.outputs, "outputs", even);
    for (int32_t bias : l.biases) orr::check(edit_->place(program_, bias, "tensor", 0));
  }
  void row(const Linear& l) { cut(l, l.inputs, "inputs", true); }

 private:
  void cut(const Linear& l, int dim, const char* what, bool even) {
    const int64_t extent = found_.known(l.weight).dims[static_cast<size_t>(dim)];
    const std::string has = l.path + " has " + std::to_string(extent) + " " + what;
    if (even && extent % parts_) refuse(has, extent);
    if (extent < parts_)
      throw orr::Error(ORR_INVALID, has + ", fewer than the " + std::to_string(parts_) +
                                        (parts_ > size_ ? " chunks" : " ranks") +
                                        " that they are cut for: choose a smaller number");
    orr::check(edit_->place(program_, l.weight, "tensor", dim));
  }

  [[noreturn]] void refuse(const std::string& has, int64_t extent) const {
    auto which = [&](const char* what, int64_t n) {
      return has + ", which " + what + " " + std::to_string(n) +
             " does not divide: the nearest that ";
    };
    if (extent % size_ == 0) {  // a number of chunks is the size times a power of two
      int64_t below = parts_;
      while (below > size_ && extent % below) below /= 2;
      throw orr::Error(ORR_INVALID, which("chunks", parts_) + "does is " + std::to_string(below));
    }
    int64_t below = size_, above = size_;
    while (extent % below) --below;
    while (above < extent && extent % above) ++above;
    throw orr::Error(ORR_INVALID, which("size", size_) + "do are " + std::to_string(below) +
                                      " and " + std::to_string(above));
  }

  orr_program* program_;
  const orr_edit* edit_;
  const Finder& found_;
  int64_t size_, parts_;
};

// Cuts embeddings, and the layer whose outputs are the classes, by the vocabulary.
bool cut_vocabulary(orr_program* program, const orr_edit* edit, const Finder& found,
                    Cutter& cutter) {
  for (size_t head : found.heads()) {
    const Linear& l = found.linears()[head];
    cutter.column(l, false);
    for (int32_t table : found.tables(found.known(l.weight).dims[static_cast<size_t>(l.outputs)]))
      orr::check(edit->place(program, table, "tensor", 0));
  }
  return !found.heads().empty();
}

orr_status* transform(void*, orr_program* program, const orr_edit* edit,
                      const orr_options* options) {
  return orr::guard([&] {
    auto number = [&](const char* name, int64_t fallback) {
      return options->integer(options->self, name, fallback);
    };
    int64_t size = number("size", 0);
    if (size < 0) throw orr::Error(ORR_INVALID, "size " + std::to_string(size) + " is negative");
    if (!size) size = edit->ranks_left(program);
    orr::check(edit->axis(program, "tensor", static_cast<int32_t>(size)));
    const int64_t chunks = number("chunks", 0);
    if (chunks) orr::check(edit->chunk(program, "tensor", static_cast<int32_t>(chunks)));
    Finder found(program, edit);
    std::set<size_t> columns = named(found, "column", options->text(options->self, "column", ""));
    std::set<size_t> rows = named(found, "row", options->text(options->self, "row", ""));
    if (size == 1 && chunks <= 1) return;
    Cutter cutter(program, edit, found, size, chunks);
    if (columns.empty() && rows.empty()) columns = found.columns(), rows = found.rows();
    for (size_t l : columns) cutter.column(found.linears()[l], true);
    for (size_t l : rows) cutter.row(found.linears()[l]);
    bool vocabulary = number("vocab", 1) && cut_vocabulary(program, edit, found, cutter);
    if (columns.empty() && rows.empty() && !vocabulary)
      throw orr::Error(
          ORR_INVALID,
          "there are no two linear layers in a row to cut: name layers in column and row");
    if (number("sequence", 0)) orr::check(edit->scatter(program, "tensor", 1));
  });
}

// Predicts the volumes that the papers give, but with the exact shares of N elements over P ranks:
// all_gather and reduce_scatter (P-1)/P N each; all_reduce their sum; all_to_all (P-1)/P of the N
// elements that a rank holds.
orr_status* predict(void*, const orr_predict_query* query, orr_prediction* out) {
  return orr::guard([&] {
    const int64_t n = static_cast<int64_t>(query->reduced_elements), peers = query->axis_size - 1;
    const int64_t mine = query->counts
                             ? query->counts[query->rank]
                             : orr::traffic::share_begin(n, query->rank + 1, query->axis_size) -
                                   orr::traffic::share_begin(n, query->rank, query->axis_size);
    const int64_t to_owners = n - mine, to_peers = mine * peers;
    int64_t sent = to_owners + to_peers;
    if (query->op == ORR_COLL_ALL_GATHER) sent = to_peers;
    if (query->op == ORR_COLL_REDUCE_SCATTER || query->op == ORR_COLL_TREE_REDUCE_SCATTER ||
        query->op == ORR_COLL_ALL_TO_ALL)
      sent = to_owners;
    out->bytes_sent = static_cast<uint64_t>(sent * query->element_bytes);
  });
}

constexpr orr_strategy_api kApi = orr::strategy_table(describe, transform, predict);

}  // namespace

ORR_PLUGIN(ORR_KIND_STRATEGY, "tensor", "0.1.0", "tensor parallelism: linear layers cut over ranks",
           orr::strategy_entry<kApi>, 1, {{"strategy", 1, 1}})
