#include "trainer/inference/generative/parzen_likelihood.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "generative/parzen_window.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/reader.h"
#include "trainer/inference/inference_net.h"

namespace trainer {
namespace {

// Returns the dataset "samples", row-major. Throws kData unless each row has `width` numbers.
std::vector<float> ReadSamples(const std::string& path, int64_t width) {
  const Hdf5Reader file(path);
  const Hdf5Array array = file.Array("samples");
  int64_t count = 1;
  for (const int64_t length : array.dims()) count *= length;
  const int64_t rows = array.dims().empty() ? 0 : array.dims()[0];
  if (rows < 1 || count / rows != width) {
    throw Error(ErrorCode::kData, {path},
                Join("its samples have ", rows < 1 ? 0 : count / rows,
                     " numbers each, but the records of --blob have ", width));
  }
  std::vector<float> samples(static_cast<size_t>(count));
  array.Read(samples);
  return samples;
}

// Returns the given width, or candidates from 0.05 to 0.6, each 10 % larger than the one before.
// Throws kUsage for a width that is not a number above 0.
std::vector<double> CandidateWidths(const std::string& sigma) {
  if (!sigma.empty()) {
    const std::optional<double> number = ParseNumber<double>(sigma);
    if (!number || !(*number > 0)) {
      throw Error(ErrorCode::kUsage, Join("--sigma='", EscapeControl(sigma),
                                          "' is not a number above 0; give a width such as 0.2"));
    }
    return {*number};
  }
  std::vector<double> widths;
  for (double width = 0.05; width < 0.6; width *= 1.1) widths.push_back(width);
  return widths;
}

// Runs the net and returns a blob of each pass, one after the other.
std::vector<float> ReadRecords(Net& net, const std::string& blob, int batches) {
  std::vector<float> records, batch(static_cast<size_t>(net.Value(blob).Count()));
  Progress progress("Reading data", "batches", batches);
  for (int i = 0; i < batches; ++i) {
    net.Forward();
    progress.Add(1);
    net.ReadNchw(net.Value(blob), batch);
    records.insert(records.end(), batch.begin(), batch.end());
  }
  return records;
}

}  // namespace

ParzenLikelihood MeasureParzenLikelihood(Net& net, const ParzenLikelihoodOptions& options) {
  const std::string& blob = options.blob;
  if (blob.empty()) {
    throw Error(ErrorCode::kUsage,
                "--blob is missing: name the blob with the data to compare with --samples");
  }
  RequireBlobs(net, "blob", {blob});
  const Tensor value = net.Value(blob);
  const int64_t rows = value.shape.Rank() > 0 ? value.shape[0] : 1;
  const int64_t width = value.Count() / rows;
  ParzenWindow window(net.device(), ReadSamples(options.samples, width), width, rows);
  std::vector<double> widths = CandidateWidths(options.sigma);
  const int validation = options.sigma.empty() ? options.validation : 0;
  if (validation > 0) {
    const std::vector<double> densities =
        window.MeanLogDensities(ReadRecords(net, blob, validation), widths);
    const auto best = std::ranges::max_element(densities) - densities.begin();
    widths = {widths[static_cast<size_t>(best)]};
  }
  const int test_batches = options.iterations - validation;
  if (test_batches < 1) {
    throw Error(ErrorCode::kUsage,
                "--iterations must be larger than --validation, so that test batches are left");
  }
  const double likelihood =
      window.MeanLogDensities(ReadRecords(net, blob, test_batches), widths)[0];
  return {widths[0], test_batches * rows, likelihood};
}

std::string ToText(const ParzenLikelihood& likelihood) {
  return Join("sigma          ", static_cast<float>(likelihood.sigma), "\nlog-likelihood ",
              Fixed(likelihood.log_likelihood, 2), " nats per record, the mean of ",
              likelihood.records, " records\n");
}

Json ToJson(const ParzenLikelihood& likelihood) {
  return Json::Object()
      .Set("sigma", likelihood.sigma)
      .Set("records", likelihood.records)
      .Set("log_likelihood", likelihood.log_likelihood);
}

}  // namespace trainer
