#include "checks/ignored_fields.h"

#include <glog/logging.h>
#include <google/protobuf/descriptor.h>

#include <set>

#include "trainer/base/text/text.h"
#include "upgrade/upgrade_layers.h"

namespace trainer {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr char kEngine[] = "this program chooses the kernels itself";
constexpr char kMachines[] = "each machine computes the whole net";

// Logs one line per kind of hint, with the first place that holds it.
class Hints {
 public:
  // Reports the hints of a net and of all its layers.
  void Look(const NetSpec& net) {
    const caffe::NetParameter& proto = net.proto;
    if (!proto.engine().empty()) Add("engine", net.Where("engine"), kEngine);
    if (proto.bn_stats_batch_size() > 0) {
      Add("bn_stats_batch_size", net.Where("bn_stats_batch_size"),
          "a BatchNorm computes the statistics of its whole batch");
    }
    if (proto.has_multinode()) Add("multinode", net.Where("multinode"), kMachines);
    constexpr const char* kAlgorithms = "default_conv_algos_override";
    if (proto.has_default_conv_algos_override()) Add(kAlgorithms, net.Where(kAlgorithms), kEngine);
    for (const LayerSpec& layer : net.layers) Look(layer);
  }

 private:
  // Reports the hints of one layer.
  void Look(const LayerSpec& layer) {
    const caffe::LayerParameter& proto = layer.proto();
    if (!proto.engine().empty()) Add("engine", layer.Where("engine"), kEngine);
    if (proto.has_quantization_param()) {
      Add("quantization_param", layer.Where("quantization_param"), "layers compute in FLOAT");
    }
    if (proto.has_multinode()) Add("multinode", layer.Where("multinode"), kMachines);
    if (proto.has_cudnn_math_override()) {
      Add("cudnn_math_override", layer.Where("cudnn_math_override"),
          "default_cudnn_math_override of the net, or --tf32, applies to all layers");
    }
    if (proto.data_param().rand_skip() > 0) {
      Add("rand_skip", layer.WhereIn("data_param", "rand_skip"),
          "a Data layer starts at the first record, and ranks read different records");
    }
    LookAtAlgorithms(layer);
    for (const char* field : {"mn_activation_param", "mn_grad_compress_param"}) {
      const auto* known = caffe::LayerParameter::descriptor()->FindFieldByName(field);
      if (!proto.GetReflection()->HasField(proto, known)) continue;
      Add("multinode", layer.Where(field), kMachines);
    }
    LookAtEngines(layer);
  }

  // Reports the fields with which NVIDIA Caffe chooses cuDNN's algorithms.
  void LookAtAlgorithms(const LayerSpec& layer) {
    const caffe::ConvolutionParameter& param = layer.proto().convolution_param();
    const auto add = [&](const char* field) {
      Add(field, layer.WhereIn("convolution_param", field), kEngine);
    };
    if (param.has_conv_algos_override()) add("conv_algos_override");
    if (param.has_cudnn_convolution_algo_seeker()) add("cudnn_convolution_algo_seeker");
  }

  // Reports the engine in one of the layer's own messages if it has a value that only Intel Caffe
  // has.
  void LookAtEngines(const LayerSpec& layer) {
    const caffe::LayerParameter& proto = layer.proto();
    std::vector<const FieldDescriptor*> fields;
    proto.GetReflection()->ListFields(proto, &fields);
    for (const FieldDescriptor* field : fields) {
      if (field->message_type() == nullptr || field->is_repeated()) continue;
      const auto* engine = field->message_type()->FindFieldByName("engine");
      if (engine == nullptr) continue;
      const Message& param = proto.GetReflection()->GetMessage(proto, field);
      const std::string& value = param.GetReflection()->GetEnum(param, engine)->name();
      if (!value.starts_with("MKL")) continue;
      Add("engine", layer.WhereIn(field->name(), "engine"), kEngine);
    }
  }

  // Logs a hint unless one of its kind was logged before.
  void Add(const char* kind, const SourceRef& where, const char* why) {
    if (!said_.insert(kind).second) return;
    LOG(INFO) << EscapeControl(Join(where.ToString(), ": ", kind, " has no effect: ", why));
  }

  std::set<std::string> said_;
};

// Returns the Scale that Intel Caffe runs as one layer with layer number `i`, or null.
LayerSpec* ScaleBehind(std::vector<LayerSpec>& layers, size_t i) {
  const caffe::LayerParameter& proto = layers[i].proto();
  if (proto.top_size() != 1) return nullptr;
  for (size_t k = i + 1; k < layers.size(); ++k) {
    const caffe::LayerParameter& reader = layers[k].proto();
    for (const std::string& bottom : reader.bottom()) {
      if (bottom != proto.top(0)) continue;
      return reader.type() == "Scale" && reader.bottom_size() == 1 ? &layers[k] : nullptr;
    }
  }
  return nullptr;
}

}  // namespace

void LogHints(const NetSpec& net) { Hints().Look(net); }

void MoveBatchNormFillers(std::vector<LayerSpec>* layers, Upgrades* upgrades) {
  int64_t moved = 0;
  for (size_t i = 0; i < layers->size(); ++i) {
    LayerSpec& layer = (*layers)[i];
    if (!layer.proto().batch_norm_param().has_filler()) continue;
    if (layer.proto().batch_norm_param().has_scale_filler()) {
      layer.FailIn(
          "batch_norm_param", "filler",
          "filler and scale_filler are both given: both initialise the learned scale; remove one");
    }
    caffe::BatchNormParameter& param = *layer.mutable_proto().mutable_batch_norm_param();
    LayerSpec* const scale = param.scale_bias() ? nullptr : ScaleBehind(*layers, i);
    if (scale == nullptr) {
      *param.mutable_scale_filler() = param.filler();
    } else {
      caffe::ScaleParameter& to = *scale->mutable_proto().mutable_scale_param();
      *to.mutable_filler() = param.filler();
      if (param.has_bias_filler() && to.bias_term())
        *to.mutable_bias_filler() = param.bias_filler();
      param.clear_bias_filler();
    }
    param.clear_filler();
    ++moved;
  }
  if (moved == 0) return;
  upgrades->done.push_back(Join(layers->front().Where().file, ": rewrote the filler of ",
                                Counted(moved, "BatchNorm"),
                                " as the filler of the Scale layer after it, or as scale_filler"));
}

}  // namespace trainer
