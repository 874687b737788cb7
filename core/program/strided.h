// SPDX-License-Identifier: Apache-2.0
//
// How values lie in memory where they need not be contiguous: as views of others, or in the order
// of what they are made of.
#pragma once

#include "program/op.h"

namespace orrery {

// x, as ops see it: a transpose, a `windows` op with these attributes (ops/windows.cpp), a reshape
// to these dims; false where the strides do not allow that.
Strided transposed(const Strided& x, const Dims& permutation);
Strided windows_of(const Strided& x, const Attrs& attrs);
bool reshaped(const Strided& x, const Dims& dims, Strided& view);
// The permutation that undoes another.
Dims inverse(const Dims& permutation);

// The dims of more than one index by their strides, the largest first.
std::vector<size_t> order_in_memory(const Strided& x);

// The layout in which a pointwise op best makes a value of this type: with the dims in the order
// in which all inputs of these dims have them, but for those that show an element several times, so
// that memory is walked in its order; else contiguous. Elements have no gaps.
Strided layout_like(const Expr& expr, const std::vector<Strided>& in, const Type& out);

// Whether an expression draws random numbers, which count the elements in the order of the dims.
bool draws(const Expr& expr);

}  // namespace orrery
