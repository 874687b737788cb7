// SPDX-License-Identifier: Apache-2.0
//
// The recording slots of device/1. An orr_graph is a Graph of graph.cpp.
#pragma once

#include <orrery/device.h>

namespace orr_cuda {

orr_status* capture_begin(void*, orr_stream* stream);
orr_status* capture_end(void*, orr_stream* stream, orr_graph** out);
orr_status* graph_launch(void*, orr_graph* graph, orr_stream* stream);
void graph_destroy(void*, orr_graph* graph);

}  // namespace orr_cuda
