#include "trainer/inference/predict/feature_extraction.h"

#include <algorithm>
#include <memory>
#include <span>

#include "predict/blob_writer.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/predict/blob_source.h"

namespace trainer {
namespace {

// Writes the blobs after a pass. If a blob is as long as the batch, its rows after the first
// `filled` are padding and are left out.
void WriteBlobs(const Net& net, const std::vector<std::string>& blobs, int64_t filled,
                int64_t batch, BlobWriter& writer) {
  std::vector<float> host;
  for (size_t i = 0; i < blobs.size(); ++i) {
    const Tensor value = net.Value(blobs[i]);
    std::vector<int64_t> dims(value.shape.dims().begin(), value.shape.dims().end());
    if (dims.empty()) dims = {1};
    host.resize(static_cast<size_t>(value.Count()));
    net.ReadNchw(value, host);
    const auto row = host.size() / static_cast<size_t>(std::max<int64_t>(dims[0], 1));
    if (dims[0] == batch && filled < batch) dims[0] = filled;
    writer.Add(i, dims, std::span(host).first(row * static_cast<size_t>(dims[0])));
  }
}

// Returns whether images fill the Input layer.
bool HasImages(const FeatureOptions& options) {
  return !options.images.empty() || !options.image_flags.list.empty();
}

// Returns the source that the options name for the Input layers; for a net without them, one that
// counts the passes of its data layers. Throws kUsage unless exactly one source fits.
std::unique_ptr<BlobSource> MakeSource(InferenceNet& net, const FeatureOptions& options) {
  const int given =
      (options.input.empty() ? 0 : 1) + (options.random ? 1 : 0) + (HasImages(options) ? 1 : 0);
  if (InputBlobs(net.net()).empty()) {
    if (given == 0) return MakeDataLayerSource(options.iterations);
    throw Error(ErrorCode::kUsage,
                "--input, --random and images fill Input layers, and this net has none: its data "
                "layers read the data; leave them out");
  }
  if (given != 1) {
    throw Error(ErrorCode::kUsage,
                given == 0 ? "the net has Input layers, and nothing fills them; give "
                             "--input=FILE.h5 (or .npz), --random or images"
                           : "images, --input and --random each fill the Input layers; give only "
                             "one of them");
  }
  if (HasImages(options)) {
    return MakeImageSource(ImagePaths(options.images, options.image_flags.list),
                           ResolvePreprocessOptions(options.image_flags, net.spec()), net.net());
  }
  if (!options.input.empty()) return MakeArraySource(options.input, net.net());
  return MakeRandomSource(options.seed, options.iterations);
}

}  // namespace

int ExtractFeatures(InferenceNet& inference, const FeatureOptions& options) {
  Net& net = inference.net();
  RequireBlobs(net, "blobs", options.blobs);
  const std::unique_ptr<BlobSource> source = MakeSource(inference, options);
  if (!options.weights.empty()) {
    inference.LoadWeights(options.weights);
  } else if (!net.params().empty()) {
    throw Error(ErrorCode::kUsage,
                Join("'trainer features' needs --weights=FILE: the net has ", net.params().size(),
                     " parameters, and without weights they would be random"));
  }
  const std::unique_ptr<BlobWriter> writer =
      MakeBlobWriter(options.backend, options.blobs, options.out, options.replace);
  const std::vector<InputBlob> inputs = InputBlobs(net);
  const int64_t batch = inputs.empty() ? 0 : inputs[0].value.shape[0];
  int passes = 0;
  {
    const bool known = !HasImages(options) && options.input.empty();
    Progress progress("Writing features", "batches", known ? options.iterations : 0);
    for (int64_t filled; (filled = source->Fill(net)) > 0; ++passes) {
      net.Forward();
      WriteBlobs(net, options.blobs, filled, batch, *writer);
      progress.Add(1);
    }
  }
  writer->Finish();
  return passes;
}

}  // namespace trainer
