#include "trainer/input/mean_image.h"

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/config/blob.h"
#include "trainer/config/named_file.h"

namespace trainer {

std::string ImageShape::ToString() const { return Join(channels, "x", height, "x", width); }

MeanImage ReadMeanFile(const std::string& path) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  MeanImage mean;
  mean.path = path;
  const std::string content = ReadFile(mean.path, kMaxBytes);
  caffe::BlobProto proto;
  if (content.empty() || !proto.ParseFromString(content)) {
    throw Error(
        ErrorCode::kData, {mean.path},
        Join("not a mean file: its ", content.size(), " bytes are not a BlobProto message"));
  }
  const BlobData blob = ReadBlob(proto, {mean.path}, "the mean");
  std::vector<int64_t> dims = blob.dims;
  if (dims.size() == 4 && dims[0] == 1) dims.erase(dims.begin());
  if (dims.size() != 3 || blob.values.empty()) {
    throw Error(ErrorCode::kData, {mean.path},
                Join("the mean must have the shape 1 C H W, not ", ShapeText(blob.dims)));
  }
  mean.shape = {dims[0], dims[1], dims[2]};
  mean.values.assign(blob.values.begin(), blob.values.end());
  return mean;
}

MeanImage ReadMeanImage(const LayerSpec& layer) {
  const caffe::TransformationParameter& param = layer.proto().transform_param();
  if (!param.has_mean_file()) return {};
  return ReadNamedFile(layer, "transform_param", "mean_file", param.mean_file(), ReadMeanFile);
}

}  // namespace trainer
