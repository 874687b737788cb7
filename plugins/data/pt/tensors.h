// SPDX-License-Identifier: Apache-2.0
//
// The pickle in which torch.save says what is where: dictionaries, lists, tuples, numbers and texts
// are read, for the tensors that they hold.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "pickle.h"

namespace data {

// All tensors by their places, "model.layers.0.weight": keys of dictionaries, and numbers in lists
// from 0; one that was saved alone is "tensor". Throws Error, which begins with `label`.
std::map<std::string, PickledTensor> pickled_tensors(const std::string& pickle,
                                                     const std::string& label);

// A whole number or a text. Throws Error for a pickle of anything else.
std::variant<int64_t, std::string> pickled_value(const std::string& pickle,
                                                 const std::string& label);

// A tensor's name as scripts may see it.
bool is_printable(const std::string& name);

}  // namespace data
