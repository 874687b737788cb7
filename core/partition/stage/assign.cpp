// SPDX-License-Identifier: Apache-2.0
#include "partition/stage.h"

#include <orrery/sdk/path.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "program/op.h"

namespace orrery {
namespace {

// "blocks.1" of the region "GPT.blocks.1.mlp.3": a block, which balancing never splits.
std::string block_of(const std::string& region) {
  std::vector<std::string> parts = orr::path::cut(orr::path::inside(region), '.');
  if (parts.empty()) return "";
  long number;
  bool element = parts.size() > 1 && orr::path::whole_number(parts[1], number);
  return element ? parts[0] + "." + parts[1] : parts[0];
}

class Assigner {
 public:
  Assigner(Program& p, int chunks) : p_(p), chunks_(chunks) {}

  void name(const std::vector<std::string>& modules) {
    for (const std::string& list : modules) patterns_.push_back(orr::path::cut(list, ','));
  }

  // Divides the sequence of blocks into chunks so that the costliest chunk costs least, and sets
  // `chosen`. If that is not empty, the blocks stay in the chunks that it says; a block that it
  // does not have goes with the block before it.
  void balance(ChunkModules& chosen) {
    std::vector<std::string> blocks;
    std::vector<double> cost;
    find_blocks(blocks, cost);
    if (chosen.empty()) {
      chosen = choose(blocks, cost);
      patterns_ = chosen;
      return;
    }
    patterns_.resize(chosen.size());
    size_t at = 0;
    for (const std::string& block : blocks) {
      for (size_t c = 0; c < chosen.size(); ++c)
        if (std::find(chosen[c].begin(), chosen[c].end(), block) != chosen[c].end()) at = c;
      patterns_[at].push_back(block);
    }
  }

  void run() {
    floating_.assign(p_.ops().size(), false);
    for (size_t i = 0; i < p_.ops().size(); ++i)
      if (Op& op = p_.mutable_ops()[i]; op.phase == Phase::forward) op.stage = forward_stage(i);
    check_used();
    place_floating();
    for (Op& op : p_.mutable_ops()) {
      if (op.phase == Phase::forward) continue;
      bool twin = op.phase == Phase::backward && op.twin != kNone;
      op.stage = twin ? p_.ops()[static_cast<size_t>(op.twin)].stage : chunks_ - 1;
      if (twin) op.stage = std::min(op.stage, first_gradient(op));
    }
  }

 private:
  // Gradients travel from the last stage to the first. So an op that adds gradients of several
  // stages, as under a loss of several layers, belongs to the earliest of them.
  int first_gradient(const Op& op) const {
    int first = chunks_ - 1;
    for (ValueId v : op.in)
      if (OpId maker = p_.value(v).producer; maker != kNone)
        if (const Op& made = p_.ops()[static_cast<size_t>(maker)]; made.phase == Phase::backward)
          first = std::min(first, made.stage);
    return first;
  }

  int forward_stage(size_t i) {
    const Op& op = p_.ops()[i];
    int from = 0;
    bool bound = false;
    for (ValueId v : op.in) {
      OpId maker = p_.value(v).producer;
      if (maker == kNone || floating_[static_cast<size_t>(maker)]) continue;
      from = std::max(from, p_.ops()[static_cast<size_t>(maker)].stage), bound = true;
    }
    int named = named_chunk(op);
    floating_[i] = !bound && named == kNone;
    if (named == kNone) return from;
    if (named < from && op.twin != kNone)
      fail(
          ORR_INVALID,
          "{}a derivative inside of the loss goes from the last chunk of the model, {}, back to "
          "chunk {}, and forward passes never do: put the layers that it passes into one chunk, or "
          "train without chunks",
          op.site.prefix(), from + 1, named + 1);
    if (named < from)
      fail(ORR_INVALID,
           "{}chunk {} of the model needs what chunk {} computes: list modules in the order of "
           "their use",
           op.site.prefix(), named + 1, from + 1);
    return named;
  }

  // Ops that depend on the batch only, and on no module, go to the first chunk that reads them.
  void place_floating() {
    std::vector<int> first_use(p_.values().size(), chunks_ - 1);
    for (size_t i = p_.ops().size(); i-- > 0;) {
      Op& op = p_.mutable_ops()[i];
      if (op.phase != Phase::forward) continue;
      if (floating_[i]) {
        op.stage = chunks_ - 1;
        for (ValueId v : op.out) op.stage = std::min(op.stage, first_use[static_cast<size_t>(v)]);
      }
      for (ValueId v : op.in)
        first_use[static_cast<size_t>(v)] = std::min(first_use[static_cast<size_t>(v)], op.stage);
    }
  }

  int named_chunk(const Op& op) {
    std::string path = orr::path::inside(op.site.region.str());
    if (path.empty()) return kNone;
    int found = kNone;
    for (size_t c = 0; c < patterns_.size(); ++c)
      for (const std::string& pattern : patterns_[c]) {
        if (orr::path::front(pattern, path).empty()) continue;
        if (found != kNone && found != static_cast<int>(c))
          fail(ORR_INVALID, "{}module '{}' is named in chunks {} and {} of the model; name it once",
               op.site.prefix(), path, found + 1, c + 1);
        found = static_cast<int>(c), used_[pattern] = true;
      }
    bool holds = std::any_of(op.in.begin(), op.in.end(),
                             [&](ValueId v) { return p_.value(v).role == Role::param; });
    if (found == kNone && holds)
      fail(ORR_INVALID, "{}module '{}' belongs to no chunk of the model; add it to one of the {}",
           op.site.prefix(), path, chunks_);
    return found;
  }

  void check_used() const {
    std::vector<std::string> blocks;
    for (const Op& op : p_.ops())
      if (std::string block = block_of(op.site.region);
          !block.empty() && op.phase == Phase::forward)
        if (std::find(blocks.begin(), blocks.end(), block) == blocks.end()) blocks.push_back(block);
    for (auto& list : patterns_)
      for (const std::string& pattern : list)
        if (!used_.count(pattern))
          fail(ORR_INVALID, "'{}' matches no module{}; there are {}", pattern,
               did_you_mean(pattern, blocks), join(blocks, ", "));
  }

  // Modules that compute something between their parts, such as a relu, and so are one block.
  std::set<std::string> whole_modules() const {
    std::set<std::string> found;
    for (const Op& op : p_.ops())
      if (const std::string path = orr::path::inside(op.site.region.str());
          op.phase == Phase::forward && path.find('.') == path.npos)
        found.insert(path);
    return found;
  }

  // The blocks in the order of their use, and what each costs.
  void find_blocks(std::vector<std::string>& blocks, std::vector<double>& cost) const {
    const std::set<std::string> whole = whole_modules();
    for (const Op& op : p_.ops()) {
      std::string block = block_of(op.site.region);
      if (block.empty() || op.phase != Phase::forward) continue;
      if (const std::string module = block.substr(0, block.find('.')); whole.count(module))
        block = module;
      auto at = std::find(blocks.begin(), blocks.end(), block);
      if (at == blocks.end()) blocks.push_back(block), cost.push_back(0), at = blocks.end() - 1;
      Cost c = op_def(op.kind).cost(args_of(p_, op), out_types(p_, op));
      cost[static_cast<size_t>(at - blocks.begin())] += c.flops + c.bytes;
    }
  }

  ChunkModules choose(const std::vector<std::string>& blocks,
                      const std::vector<double>& cost) const {
    if (blocks.empty())
      fail(ORR_INVALID,
           "the model has no modules to divide: it takes those inside of one that holds them all; "
           "make the model one by nn.sequential or nn.module");
    if (static_cast<int>(blocks.size()) < chunks_)
      fail(ORR_INVALID, "the model has {} modules ({}), too few for {} chunks", blocks.size(),
           join(blocks, ", "), chunks_);
    const std::vector<size_t> at = even_chunks(cost);
    ChunkModules chosen;
    for (size_t c = 0; c + 1 < at.size(); ++c)
      chosen.emplace_back(blocks.begin() + static_cast<long>(at[c]),
                          blocks.begin() + static_cast<long>(at[c + 1]));
    return chosen;
  }

  // best[c][i]: the least possible cost of the costliest of c chunks over the first i blocks.
  std::vector<size_t> even_chunks(const std::vector<double>& cost) const {
    size_t n = cost.size(), chunks = static_cast<size_t>(chunks_);
    std::vector<double> sum(n + 1);
    for (size_t i = 0; i < n; ++i) sum[i + 1] = sum[i] + cost[i];
    std::vector<std::vector<double>> best(chunks + 1, std::vector<double>(n + 1, 1e300));
    std::vector<std::vector<size_t>> from(chunks + 1, std::vector<size_t>(n + 1));
    best[0][0] = 0;
    for (size_t c = 1; c <= chunks; ++c)
      for (size_t i = c; i <= n; ++i)
        for (size_t j = c - 1; j < i; ++j)
          if (double most = std::max(best[c - 1][j], sum[i] - sum[j]); most < best[c][i])
            best[c][i] = most, from[c][i] = j;
    std::vector<size_t> cut(chunks + 1, n);
    for (size_t c = chunks; c > 0; --c) cut[c - 1] = from[c][cut[c]];
    return cut;
  }

  Program& p_;
  int chunks_;
  ChunkModules patterns_;
  std::map<std::string, bool> used_;
  std::vector<char> floating_;  // by op: only its readers decide its chunk
};

}  // namespace

void assign_stages(Program& p, int chunks, const std::vector<std::string>& modules) {
  Assigner assigner(p, chunks);
  assigner.name(modules);
  assigner.run();
}

void balance_stages(Program& p, int chunks, ChunkModules& chosen) {
  Assigner assigner(p, chunks);
  assigner.balance(chosen);
  assigner.run();
}

}  // namespace orrery
