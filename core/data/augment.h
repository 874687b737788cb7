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

// REQUIRES: the field is there and holds images, whose dtype is f32 if there is a mean; a square of
// `crop` fits into one with its padding; mean and std have a number for each channel, or none.
DatasetPtr augment(DatasetPtr data, const Augmentation& how);

}  // namespace orrery
