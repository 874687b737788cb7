// SPDX-License-Identifier: Apache-2.0
//
// Mesh axes, and products of several. "outer*inner" is the axis of all pairs of coordinates; the
// last factor varies fastest. "" is the axis with one coordinate.
#pragma once

#include <string>
#include <vector>

namespace orrery {

std::vector<std::string> factors_of(const std::string& product);
// Whether every factor of `axis` is one of `product`.
bool has_axis(const std::string& product, const std::string& axis);
// `product` followed by those factors of `axis` that it lacks.
std::string with_axis(const std::string& product, const std::string& axis);
std::string without_axis(const std::string& product, const std::string& axis);

}  // namespace orrery
