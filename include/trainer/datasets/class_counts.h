#pragma once
// Numbers of records of the classes of a training set, and the class weights that follow from them.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "trainer/config/layer_spec.h"

namespace trainer {

// Returns how many records have each label, where output `top` of a data layer holds the labels: of
// all records of a Data or ImageData layer, and of all numbers of the datasets of an HDF5Data
// layer. Returns an empty map for labels that cannot be counted: of other layers, and in images of
// labels. Throws as opening the set does, and as ReadLabels.
std::map<float, int64_t> CountLabels(const LayerSpec& layer, int top);

// Returns a weight for each class, proportional to 1 / count^power, so that the mean weight of all
// records is 1. With power 1 the weight is records / (classes * count). A class without records
// is not counted and gets 1.
std::vector<float> InverseFrequencyWeights(std::span<const int64_t> counts, double power);

}  // namespace trainer
