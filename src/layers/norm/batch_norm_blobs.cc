#include "norm/batch_norm_blobs.h"

#include <vector>

#include "trainer/base/text/text.h"
#include "trainer/config/blob.h"

namespace trainer {
namespace {

// Reads and writes the blobs of a file; decodes a blob only when it is needed.
class Blobs {
 public:
  Blobs(caffe::LayerParameter& layer, const std::string& file) : layer_(layer), file_(file) {}

  BlobData Read(int i) const {
    return ReadBlob(layer_.blobs(i), {file_}, BlobName(layer_.name(), i));
  }
  // Replaces or appends blob i: `values` in the shape of `like`.
  void Write(int i, const BlobData& like, const std::vector<float>& values) {
    while (layer_.blobs_size() <= i) layer_.add_blobs();
    caffe::BlobProto blob;
    WriteBlob(like.dims, values, &blob);
    *layer_.mutable_blobs(i) = blob;
  }
  // Converts an old order, (scale, bias, mean, variance, factor), to the current one. Only the
  // factor is a single number.
  void MoveStatisticsFirst() {
    if (Read(2).values.size() == 1 || Read(4).values.size() != 1) return;
    auto& blobs = *layer_.mutable_blobs();
    blobs.SwapElements(0, 2);
    blobs.SwapElements(1, 3);
    blobs.SwapElements(2, 4);
    blobs.SwapElements(3, 4);
  }
  // Converts sums to averages of weight 1. A weight of 0 means that nothing is stored yet.
  void DivideByFactor() {
    const BlobData factor = Read(2);
    if (factor.values.size() != 1) return;
    const float by = factor.values[0];
    if (by == 0 || by == 1) return;
    for (int i = 0; i < 3; ++i) {
      const BlobData blob = Read(i);
      std::vector<float> values(blob.values.begin(), blob.values.end());
      for (float& value : values) value /= by;
      Write(i, blob, values);
    }
  }
  // Adds scale 1 and bias 0, because the file's layer did not learn them.
  void AddScaleAndBias() {
    const BlobData mean = Read(0);
    const size_t count = mean.values.size();
    Write(3, mean, std::vector<float>(count, 1));
    Write(4, mean, std::vector<float>(count, 0));
  }

 private:
  caffe::LayerParameter& layer_;
  const std::string& file_;
};

}  // namespace

bool AdaptBatchNormBlobs(const LayerSpec& spec, const caffe::LayerParameter& stored,
                         const std::string& file, caffe::LayerParameter* adapted) {
  const bool learned = LearnsScaleAndBias(spec.proto().batch_norm_param());
  const int count = stored.blobs_size();
  if (!learned && count == 5) {
    throw Error(
        ErrorCode::kData, {file},
        Join("layer '", stored.name(), "' has 5 blobs in the file (statistics and a ",
             "learned scale and bias), but this BatchNorm (", spec.Where().ToString(),
             ") has no scale and bias; write scale_bias: true in its batch_norm_param and remove ",
             "the Scale layer after it, if there is one"));
  }
  if (!learned || (count != 3 && count != 5)) return false;
  *adapted = stored;
  Blobs blobs(*adapted, file);
  if (count == 5) blobs.MoveStatisticsFirst();
  blobs.DivideByFactor();
  if (count == 3) blobs.AddScaleAndBias();
  return true;
}

}  // namespace trainer
