// SPDX-License-Identifier: Apache-2.0
//
// Random changes of images, and their normalisation. What is done to a sample is a function of
// seed, epoch and sample (Pick::draw): the same on any number of ranks, and after a restart.
#pragma once

#include "data/dataset.h"

namespace orrery {

struct Augmentation {
  std::string field = "x";        // images [C,H,W]
  int64_t crop = 0;               // edge of a random square out of the padded image; 0: none
  int64_t pad = 0;                // zeros around it before it is cropped
  bool flip = false;              // left and right are exchanged, of every second image
  std::vector<double> mean, std;  // x becomes (x - mean[c]) / std[c]; empty: left as it is
};

// Throws Error for a field that holds no images, and for options that do not fit them.
DatasetPtr augment(DatasetPtr data, const Augmentation& how);

}  // namespace orrery
