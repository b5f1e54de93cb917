#include "bench/kernels/zoo_convs.h"

#include <algorithm>
#include <tuple>

#include "conv_kernels.h"
#include "support/source_folder.h"
#include "trainer/backend/device/cpu_device.h"
#include "trainer/base/text/text.h"
#include "trainer/net/compile.h"
#include "trainer/net/net.h"

namespace trainer {
namespace {

struct Model {
  const char* folder;
  int64_t channels, size;  // of the images from its data layer
};
const Model kModels[] = {{"lenet", 1, 28},         {"siamese", 2, 28},       {"mnist_cnn", 1, 28},
                         {"cifar10_quick", 3, 32}, {"cifar10_full", 3, 32},  {"alexnet", 3, 227},
                         {"caffenet", 3, 227},     {"googlenet", 3, 224},    {"resnet50", 3, 224},
                         {"mobilenet_v2", 3, 224}, {"resnet18_cifar", 3, 32}};

// Returns the convolutions that the device was asked for while a net was planned. A candidate with
// the first priority records them and declines.
std::vector<ConvDesc>& Asked() {
  static std::vector<ConvDesc> asked;
  return asked;
}
KernelOrReason<ConvForward> Record(const Device&, const ConvDesc& desc) {
  Asked().push_back(desc);
  return Unsupported{"it only takes notes"};
}
const RegisterConvKernel<ConvForward> kRecorder({DeviceKind::kCpu, 0, "recorder", Record});

NetSpec WithoutDatabases(const Model& model, int64_t most_images) {
  NetSpec net = LoadNet(Join(SourceFolder(), "/models/", model.folder, "/train_test.prototxt"));
  for (LayerSpec& layer : net.layers) {
    if (layer.type() != "Data") continue;
    caffe::LayerParameter& proto = layer.mutable_proto();
    const int64_t images = std::min<int64_t>(most_images, proto.data_param().batch_size());
    proto.set_type("DummyData");
    proto.clear_data_param();
    proto.clear_transform_param();
    for (int i = 0; i < proto.top_size(); ++i) {
      caffe::BlobShape& shape = *proto.mutable_dummy_data_param()->add_shape();
      shape.add_dim(images);
      if (i > 0) continue;
      for (const int64_t dim : {model.channels, model.size, model.size}) shape.add_dim(dim);
    }
  }
  return net;
}

auto Key(const ConvDesc& d) {
  return std::tie(d.batch, d.in_channels, d.out_channels, d.group, d.in, d.kernel, d.stride, d.pad,
                  d.dilation, d.bias);
}

void AddModel(const Model& model, int64_t most_images, std::vector<ZooConv>* convs) {
  Asked().clear();
  const auto device = MakeCpuDevice();
  ParamStore params(*device);
  NetOptions options;
  options.state.set_phase(caffe::TRAIN);
  options.training = true;
  options.log = false;
  const NetSpec spec = WithoutDatabases(model, most_images);
  Compile(spec, options, *device, params);
  for (const ConvDesc& desc : Asked()) {
    auto at = std::ranges::find_if(
        *convs, [&](const ZooConv& conv) { return Key(conv.desc) == Key(desc); });
    if (at == convs->end()) at = convs->insert(at, {desc, "", 0});
    ++at->count;
    if (at->nets.find(model.folder) == std::string::npos) {
      at->nets += Join(at->nets.empty() ? "" : " ", model.folder);
    }
  }
}

}  // namespace

std::vector<ZooConv> ConvsOfZoo(int64_t most_images, const std::vector<std::string>& only) {
  std::vector<ZooConv> convs;
  for (const Model& model : kModels) {
    if (only.empty() || std::ranges::count(only, model.folder) > 0) {
      AddModel(model, most_images, &convs);
    }
  }
  return convs;
}

}  // namespace trainer
