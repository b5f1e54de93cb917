#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/inference/generative/sampler.h"

namespace trainer {

// Returns the shape (N, C, H, W) in which samples of the shape `dims` are drawn as images: `shape`,
// "C,H,W", if it is given, else `dims` if it has four axes, else a square gray image. Throws kUsage
// if `shape` does not fit, or if a sample is not a square.
std::vector<int64_t> SampleImageDims(const std::vector<int64_t>& dims, const std::string& shape);

// Writes the samples as one PNG image, at most 256 of them side by side. Throws as SampleImageDims
// and WriteWhole.
void WriteSampleSheet(const std::string& path, const SampleSet& samples, const std::string& shape);

// Writes all samples to an HDF5 file, as dataset "samples". Throws as Hdf5Appender.
void WriteSamples(const std::string& path, const SampleSet& samples, bool replace);

}  // namespace trainer
