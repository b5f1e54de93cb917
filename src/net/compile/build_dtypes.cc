#include <glog/logging.h>

#include <algorithm>
#include <optional>

#include "compile/build.h"
#include "trainer/base/text/text.h"
#include "trainer/config/storage.h"
#include "trainer/net/graph.h"

namespace trainer {
namespace {

// Chooses from the last layer to the first, because some layers take the dtype of their consumers.
class TypeChooser {
 public:
  TypeChooser(const NetSpec& net, const std::vector<LayerSpec>& layers, const Device& device)
      : net_(net),
        layers_(layers),
        stores_f16_(device.SupportsDtype(DType::kF16)),
        multiplies_16_bit_(device.Multiplies16Bit()),
        readers_(layers.size()),
        chosen_(layers.size()) {
    std::map<std::string, size_t> latest_by_name;  // blob name -> its layer
    for (size_t i = 0; i < layers.size(); ++i) {
      const caffe::LayerParameter& layer = layers[i].proto();
      for (int b = 0; b < layer.bottom_size(); ++b) {
        const auto producer = latest_by_name.find(layer.bottom(b));
        if (producer != latest_by_name.end()) readers_[producer->second].push_back({i, b});
      }
      for (const std::string& top : layer.top()) latest_by_name[top] = i;
    }
  }

  std::vector<std::optional<DType>> Run() {
    for (size_t i = layers_.size(); i-- > 0;) chosen_[i] = Choose(i);
    return std::move(chosen_);
  }

 private:
  struct Reader {
    size_t layer;
    int bottom;
  };

  static LayerDoc DocOf(const LayerSpec& layer) {
    const auto found = LayerDocs().find(layer.type());
    return found == LayerDocs().end() ? LayerDoc() : found->second;
  }

  DType WishOf(const LayerSpec& layer) const {
    const caffe::Type type = StorageOf(net_, layer);
    if (type == caffe::FLOAT) return DType::kF32;
    if (!multiplies_16_bit_) {
      LOG_FIRST_N(INFO, 1) << EscapeControl(Join(
          StoragePlace(net_, layer).ToString(),
          ": 16-bit values save memory, not time: this processor has no instructions for bf16, "
          "so each product converts them to floats"));
    }
    if (type == caffe::BFLOAT16) return DType::kBF16;
    if (stores_f16_) return DType::kF16;
    LOG_FIRST_N(INFO, 1) << EscapeControl(
        Join(StoragePlace(net_, layer).ToString(),
             ": on the CPU, FLOAT16 values are stored as BFLOAT16, which has the same size and the "
             "range of FLOAT; GPUs store FLOAT16"));
    return DType::kBF16;
  }

  std::optional<DType> Choose(size_t i) const {
    const LayerSpec& layer = layers_[i];
    const DtypePolicy storage = DocOf(layer).dtypes;
    const DType wish = WishOf(layer);
    const auto& weights = layer.proto().loss_weight();
    const bool is_loss = std::ranges::any_of(weights, [](float weight) { return weight != 0; });
    if (storage == DtypePolicy::kF32 || is_loss) return DType::kF32;
    if (storage == DtypePolicy::kAny) return std::nullopt;
    if (storage == DtypePolicy::kFollowsConsumers && !layer.proto().has_forward_type())
      return OfReaders(i);
    return wish;
  }

  // Returns the dtype that all consumers of layer i accept, or nullopt.
  std::optional<DType> OfReaders(size_t i) const {
    std::optional<DType> common;
    for (const Reader& reader : readers_[i]) {
      const DtypePolicy use = DocOf(layers_[reader.layer]).PolicyOfInput(reader.bottom);
      const std::optional<DType> type = use == DtypePolicy::kF32   ? DType::kF32
                                        : use == DtypePolicy::kAny ? std::nullopt
                                                                   : chosen_[reader.layer];
      if (common && type && *common != *type) return std::nullopt;
      if (type) common = type;
    }
    return common;
  }

  const NetSpec& net_;
  const std::vector<LayerSpec>& layers_;
  bool stores_f16_;
  bool multiplies_16_bit_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<std::optional<DType>> chosen_;
};

}  // namespace

std::vector<std::optional<DType>> AssignDtypes(const NetSpec& net,
                                               const std::vector<LayerSpec>& layers,
                                               const Device& device) {
  return TypeChooser(net, layers, device).Run();
}

}  // namespace trainer
