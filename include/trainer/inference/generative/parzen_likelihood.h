#pragma once

#include <cstdint>
#include <string>

#include "trainer/base/text/json.h"
#include "trainer/net/net.h"

namespace trainer {

// The samples, the records to compare them with, and the width of the window.
struct ParzenLikelihoodOptions {
  std::string samples = "";  // HDF5 file with a dataset "samples"
  std::string blob = "";     // with the records
  std::string sigma = "";    // width of the window, as text; "": choose it
  int validation = 10;       // batches that choose the width
  int iterations = 50;       // test batches, including `validation`
};

// The mean log-likelihood of test records under a Parzen window around samples of a model.
struct ParzenLikelihood {
  double sigma = 0;
  int64_t records = 0;
  double log_likelihood = 0;
};

// Compares the records of `options.blob` with samples of a model. Without a width, chooses the one
// that is best on the first `validation` batches, and measures the others with it. Requires
// BufferReuse::kSeparate. Throws kUsage if an option is missing or not a number, kData if the
// samples and the records differ in size, and as Hdf5Reader and RequireBlobs.
ParzenLikelihood MeasureParzenLikelihood(Net& net, const ParzenLikelihoodOptions& options);

std::string ToText(const ParzenLikelihood& likelihood);
Json ToJson(const ParzenLikelihood& likelihood);

}  // namespace trainer
