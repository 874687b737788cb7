// SPDX-License-Identifier: Apache-2.0
//
// Which ops attention supports, and how much scratch it needs.
#pragma once

#include <orrery/kernel.h>

namespace orr_cpu {

enum { kAttentionDepth = 256 };  // the largest head that the packed rows hold
enum { kAttentionSpan = 256 };   // queries of attention_grad that are computed together at most

// How many queries the scratch has room for, in whole panels. [any thread]
int64_t attention_span(int64_t queries);

// The size of one thread's scratch, in floats. [any thread]
int64_t attention_slot(int64_t queries, int64_t keys, int64_t depth);
int64_t attention_grad_slot(int64_t queries, int64_t keys, int64_t depth);

// For the table of ops.
void attention_supports(const orr_op& op, orr_support& out);
void attention_grad_supports(const orr_op& op, orr_support& out);
uint64_t attention_workspace(const orr_op& op);
uint64_t attention_grad_workspace(const orr_op& op);

}  // namespace orr_cpu
