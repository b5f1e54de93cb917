#include "trainer/inference/predict/blob_source.h"

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// See MakeDataLayerSource.
class DataLayerSource final : public BlobSource {
 public:
  explicit DataLayerSource(int passes) : passes_(passes) {}
  int64_t Fill(const Net&) override { return pass_++ < passes_ ? kFullBatch : 0; }

 private:
  static constexpr int64_t kFullBatch = int64_t{1} << 48;  // larger than any batch
  int passes_, pass_ = 0;
};

}  // namespace

std::vector<InputBlob> InputBlobs(const Net& net) {
  std::vector<InputBlob> inputs;
  for (const Node& node : net.graph().nodes) {
    const LayerSpec& layer = node.spec;
    if (layer.type() != "Input") continue;
    for (int top = 0; top < layer.proto().top_size(); ++top) {
      inputs.push_back({layer.proto().top(top), net.Value(node.out[static_cast<size_t>(top)])});
      if (inputs.back().value.shape.Rank() > 0) continue;
      layer.Fail("top",
                 Join("input '", inputs.back().name,
                      "' has no batch axis; give it at least one dimension"),
                 top);
    }
  }
  return inputs;
}

std::unique_ptr<BlobSource> MakeDataLayerSource(int passes) {
  return std::make_unique<DataLayerSource>(passes);
}

}  // namespace trainer
