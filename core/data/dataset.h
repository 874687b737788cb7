// SPDX-License-Identifier: Apache-2.0
//
// A dataset: a number of samples, each of which has the same fields, read in any order. What makes
// up a batch, for which rank and when, is decided by others (data/order.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "program/types.h"

namespace orrery {

struct DataField {
  std::string name;
  Type sample;  // dtype and dims of one
};

// A sample that is to be read. Random changes of it (data/augment.h) are a function of `draw`,
// which is one of seed, epoch and sample.
struct Pick {
  int64_t sample;
  uint64_t draw = 0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  const std::vector<DataField>& fields() const { return fields_; }
  int64_t samples() const { return samples_; }
  // Tokens in a sample, if sample i + 1 is sample i shifted by one token; 0 if samples share no
  // tokens.
  int64_t window() const { return window_; }
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }
  // Names of the classes that labels count, where files say them.
  const std::vector<std::string>& classes() const { return classes_; }

  // Writes the samples, one after another, to to[f] for each field f; a field whose place is null
  // is not wanted. Throws Error that names the file. REQUIRES: 0 <= sample < samples(). [any
  // thread, unless main_thread()]
  virtual void read(std::span<const Pick> picks, std::span<std::byte* const> to) const = 0;

  // Whether reading waits for files or computes, so that a thread should do it ahead of time.
  virtual bool slow() const { return true; }
  // Whether `read` is for the main thread alone.
  virtual bool main_thread() const { return false; }

 protected:
  // Says of itself all that `other` does.
  void describe_as(const Dataset& other) {
    fields_ = other.fields_, samples_ = other.samples_, window_ = other.window_;
    tokenizer_ = other.tokenizer_, classes_ = other.classes_;
  }

  std::vector<DataField> fields_;
  int64_t samples_ = 0;
  int64_t window_ = 0;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::string> classes_;
};

using DatasetPtr = std::shared_ptr<const Dataset>;

}  // namespace orrery
