#include "trainer/run/new_project/net_templates.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr int64_t kSmallSide = 32;  // pixels; of the images of CIFAR

// Appends layers to the text of a net, each on the output (`top`) of the previous one.
class LayerWriter {
 public:
  explicit LayerWriter(std::string text) : text_(std::move(text)) {}

  const std::string& text() const { return text_; }
  const std::string& top() const { return top_; }
  // Lets the next layer read `blob`, for a branch that starts at an earlier output.
  void SetTop(const std::string& blob) { top_ = blob; }
  // Appends an empty line and a comment line.
  void Comment(const std::string& comment) { text_ += "\n# " + comment + "\n"; }

  // Appends a layer whose top has its name. `body` has the lines of its other fields; `comment`
  // follows the opening brace.
  void Layer(const std::string& name, const std::string& type,
             const std::vector<std::string>& bottoms, const std::string& body,
             const std::string& comment) {
    std::string line = Join("layer {", comment.empty() ? "" : "  # " + comment, "\n  name: \"",
                            name, "\" type: \"", type, "\"");
    for (const std::string& bottom : bottoms) line += Join(" bottom: \"", bottom, "\"");
    text_ += Join(line, " top: \"", name, "\"\n", body, "}\n");
    top_ = name;
  }
  // Appends a convolution that pads by kernel / 2, so that with a stride of 1 an odd kernel keeps
  // height and width.
  void Convolution(const std::string& name, int64_t outputs, int kernel, int stride, int64_t group,
                   bool bias, const std::string& comment) {
    std::string fields = Join("num_output: ", outputs, " kernel_size: ", kernel);
    if (kernel > 1) fields += Join(" pad: ", kernel / 2);
    if (stride > 1) fields += Join(" stride: ", stride);
    if (group > 1) fields += Join(" group: ", group);
    if (!bias) fields += " bias_term: false";
    Layer(name, "Convolution", {top_},
          Join("  convolution_param { ", fields, " weight_filler { type: \"msra\" } }\n"), comment);
  }
  // Appends a layer that overwrites its input. `body` is on the line of the layer.
  void InPlace(const std::string& name, const std::string& type, const std::string& body = "") {
    text_ += Join("layer { name: \"", name, "\" type: \"", type, "\" bottom: \"", top_,
                  "\" top: \"", top_, "\"", body.empty() ? "" : " " + body, " }\n");
  }
  // Appends a convolution without bias, batch normalisation with a learned scale, and a ReLU if
  // `relu` is set. The averages for tests follow the batches as fast as PyTorch's. With Caffe's
  // 0.999 they would still describe the first weights after the few hundred iterations on a small
  // set.
  void ConvolutionBnRelu(const std::string& name, int64_t outputs, int kernel, int stride,
                         int64_t group, bool relu, const std::string& comment) {
    Convolution(name, outputs, kernel, stride, group, false, comment);
    InPlace(name + "_bn", "BatchNorm", "batch_norm_param { moving_average_fraction: 0.9 }");
    InPlace(name + "_scale", "Scale", "scale_param { bias_term: true }");
    if (relu) InPlace(name + "_relu", "ReLU");
  }
  void InnerProduct(const std::string& name, int64_t outputs, const std::string& comment) {
    Layer(name, "InnerProduct", {top_},
          Join("  inner_product_param { num_output: ", outputs,
               " weight_filler { type: \"xavier\" } }\n"),
          comment);
  }
  void Pooling(const std::string& name, const std::string& fields, const std::string& comment) {
    Layer(name, "Pooling", {top_}, Join("  pooling_param { ", fields, " }\n"), comment);
  }

 private:
  std::string text_, top_ = "data";
};

// Returns whether the net has batch normalization. Such nets are trained at a high learning rate on
// randomly cropped and flipped images.
bool IsDeep(const std::string& net_template) {
  return net_template == "cnn" || net_template == "resnet18" || net_template == "mobilenet_v2";
}

// Returns the height and width, in pixels, of the square images that the net sees: the crop or,
// without one, the shorter side of the stored images.
int64_t SideOf(const ProjectData& data, const TemplateSettings& settings) {
  return settings.crop > 0 ? settings.crop : std::min(data.height, data.width);
}

// Returns the Data layer of one phase. It subtracts the mean and scales to a standard deviation of
// 1, or for an autoencoder scales bytes to [0, 1] and has no labels. Only training mirrors images;
// both phases crop.
std::string DataLayerText(const ProjectData& data, const TemplateSettings& settings,
                          bool training) {
  std::string transform;
  const bool autoencoder = settings.net_template == "autoencoder";
  if (training && settings.mirror)
    transform += "    mirror: true        # flip half of the images\n";
  if (settings.crop > 0) {
    transform += Join("    crop_size: ", settings.crop,
                      training ? "       # cut out a square at a random place\n"
                               : "       # cut out the middle\n");
  }
  if (!autoencoder) {
    for (size_t i = 0; i < data.mean.size(); ++i) {
      transform += Join("    mean_value: ", std::round(data.mean[i] * 100) / 100,
                        i == 0 ? "  # the mean of the training set, for each channel\n" : "\n");
    }
  }
  const double scale = autoencoder ? 1 / 255.0 : 1 / std::max(1.0, std::round(data.deviation));
  transform += Join("    scale: ", static_cast<float>(scale),
                    autoencoder ? "  # bytes to [0, 1]\n" : "  # to a standard deviation of 1\n");
  return Join("layer {\n  name: \"data\" type: \"Data\" top: \"data\"",
              settings.net_template == "autoencoder" ? "" : " top: \"label\"",
              "\n  include { phase: ", training ? "TRAIN" : "TEST", " }\n  transform_param {\n",
              transform, "  }\n  data_param { source: \"", training ? data.train : data.test,
              "\" backend: ", data.backend,
              " batch_size: ", training ? settings.train_batch : settings.test_batch, " }\n}\n");
}

// Writes two hidden layers. The Write functions end before the layer with a score for each class,
// which NetText adds; only WriteAutoencoder writes its own loss.
void WriteMlp(LayerWriter* net) {
  net->InnerProduct("ip1", 256, "256 units; each reads the whole image");
  net->InPlace("relu1", "ReLU");
  net->InPlace("drop1", "Dropout", "dropout_param { dropout_ratio: 0.2 }");
  net->InnerProduct("ip2", 128, "128 units");
  net->InPlace("relu2", "ReLU");
}

// Writes LeNet as in Caffe's example for MNIST, after LeCun et al. 1998.
void WriteLeNet(LayerWriter* net) {
  net->Convolution("conv1", 20, 5, 1, 1, true, "20 filters of 5x5");
  net->Pooling("pool1", "pool: MAX kernel_size: 2 stride: 2", "halves height and width");
  net->Convolution("conv2", 50, 5, 1, 1, true, "50 filters of 5x5");
  net->Pooling("pool2", "pool: MAX kernel_size: 2 stride: 2", "halves height and width");
  net->InnerProduct("ip1", 500, "500 units");
  net->InPlace("relu1", "ReLU");
}

// Writes blocks of a convolution and a pooling, until there are 4 blocks or the images have fewer
// than 8 pixels a side, then the mean of each channel and dropout.
void WriteCnn(int64_t side, LayerWriter* net) {
  for (int block = 1; block <= 4 && side >= 8; ++block, side /= 2) {
    const int64_t outputs = int64_t{8} << block;
    net->ConvolutionBnRelu(Join("conv", block), outputs, 3, 1, 1, true,
                           Join(outputs, " filters of 3x3"));
    net->Pooling(Join("pool", block), "pool: MAX kernel_size: 2 stride: 2",
                 "halves height and width");
  }
  net->Pooling("pool", "pool: AVE global_pooling: true", "the mean of each channel");
  net->InPlace("drop", "Dropout", "dropout_param { dropout_ratio: 0.2 }");
}

// Writes the layers of ResNet-18 (He et al. 2015) up to the global pooling. Images of up to 32
// pixels keep their size in the first layer and get no max pooling, as in the paper's nets for
// CIFAR.
void WriteResNet18(int64_t side, LayerWriter* net) {
  if (side > kSmallSide) {
    net->ConvolutionBnRelu("conv1", 64, 7, 2, 1, true, "64 filters of 7x7, halves the size");
    net->Pooling("pool1", "pool: MAX kernel_size: 3 stride: 2", "halves height and width");
  } else {
    net->ConvolutionBnRelu("conv1", 64, 3, 1, 1, true, "64 filters of 3x3");
  }
  int64_t channels = 64;
  for (int stage = 1; stage <= 4; ++stage) {
    const int64_t outputs = int64_t{32} << stage;
    for (int block = 1; block <= 2; ++block) {
      const std::string name = Join("res", stage, block == 1 ? "a" : "b");
      const int stride = stage > 1 && block == 1 ? 2 : 1;
      const std::string input = net->top();
      net->Comment(Join("Residual block ", name, ": ", outputs, " channels",
                        stride == 2 ? ", halves height and width" : ""));
      std::string shortcut = input;
      if (stride > 1 || channels != outputs) {
        net->ConvolutionBnRelu(name + "_short", outputs, 1, stride, 1, false,
                               "changes the input to the shape of the output");
        shortcut = net->top();
        net->SetTop(input);
      }
      net->ConvolutionBnRelu(name + "_1", outputs, 3, stride, 1, true, "");
      net->ConvolutionBnRelu(name + "_2", outputs, 3, 1, 1, false, "");
      net->Layer(name, "Eltwise", {shortcut, net->top()}, "  eltwise_param { operation: SUM }\n",
                 "adds the input");
      net->InPlace(name + "_relu", "ReLU");
      channels = outputs;
    }
  }
  net->Pooling("pool", "pool: AVE global_pooling: true", "the mean of each channel");
}

// Writes the net of Sandler et al. 2018, table 2. Images of up to 32 pixels are halved three times
// instead of five.
void WriteMobileNetV2(int64_t side, LayerWriter* net) {
  struct Stage {
    int expansion, outputs, blocks, stride;
  };
  constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                               {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  const bool small = side <= kSmallSide;
  net->ConvolutionBnRelu("conv1", 32, 3, small ? 1 : 2, 1, true, "32 filters of 3x3");
  int64_t channels = 32;
  for (size_t stage = 0; stage < std::size(kStages); ++stage) {
    for (int block = 0; block < kStages[stage].blocks; ++block) {
      const std::string name = Join("block", stage + 1, "_", block + 1);
      const int64_t wide = channels * kStages[stage].expansion, outputs = kStages[stage].outputs;
      const int stride = block == 0 && !(small && stage == 1) ? kStages[stage].stride : 1;
      const std::string input = net->top();
      net->Comment(Join("Inverted residual ", name, ": ", channels, " to ", outputs, " channels",
                        stride == 2 ? ", halves height and width" : ""));
      if (wide != channels) {
        net->ConvolutionBnRelu(name + "_expand", wide, 1, 1, 1, true, "more channels");
      }
      net->ConvolutionBnRelu(name + "_depth", wide, 3, stride, wide, true, "each channel alone");
      net->ConvolutionBnRelu(name + "_project", outputs, 1, 1, 1, false, "fewer channels");
      if (stride == 1 && channels == outputs) {
        net->Layer(name, "Eltwise", {input, net->top()}, "  eltwise_param { operation: SUM }\n",
                   "adds the input");
      }
      channels = outputs;
    }
  }
  net->ConvolutionBnRelu("conv_last", 1280, 1, 1, 1, true, "1,280 features");
  net->Pooling("pool", "pool: AVE global_pooling: true", "the mean of each channel");
}

// Writes a net that squeezes the image through 30 numbers, after Hinton and Salakhutdinov 2006,
// with ReLU in place of sigmoids, and its loss.
void WriteAutoencoder(const ProjectData& data, const TemplateSettings& settings, LayerWriter* net) {
  const int64_t side = settings.crop;
  const int64_t numbers = data.channels * (side > 0 ? side * side : data.height * data.width);
  net->Layer("flat", "Flatten", {"data"}, "", "the image as one row of numbers");
  net->InnerProduct("encode1", 512, "the encoder");
  net->InPlace("encode1_relu", "ReLU");
  net->InnerProduct("encode2", 128, "");
  net->InPlace("encode2_relu", "ReLU");
  net->InnerProduct("code", 30, "the code: 30 numbers for each image");
  net->InnerProduct("decode2", 128, "the decoder");
  net->InPlace("decode2_relu", "ReLU");
  net->InnerProduct("decode1", 512, "");
  net->InPlace("decode1_relu", "ReLU");
  net->InnerProduct("picture", numbers, "one number per pixel and channel");
  net->Layer("loss", "SigmoidCrossEntropyLoss", {"picture", "flat"}, "",
             "compares the picture with the image");
}

}  // namespace

const std::vector<std::string>& NetTemplates() {
  static const std::vector<std::string> names = {"mlp",      "lenet",        "cnn",
                                                 "resnet18", "mobilenet_v2", "autoencoder"};
  return names;
}

std::string ChooseTemplate(const ProjectData& data) {
  if (data.classes == 0) return "autoencoder";
  const int64_t side = std::max(data.height, data.width);
  if (data.channels == 1 && side <= kSmallSide) return "lenet";
  constexpr int64_t kFew = 2000;  // images; 11 million weights would overfit fewer
  return data.train_records < kFew ? "cnn" : "resnet18";
}

TemplateSettings ChooseSettings(const ProjectData& data, const std::string& net_template,
                                const std::string& name, int64_t epochs) {
  TemplateSettings settings;
  settings.name = name;
  settings.net_template = net_template;
  const int64_t side = std::min(data.height, data.width);
  const bool deep = IsDeep(net_template);
  const int64_t least = deep ? 16 : net_template == "lenet" ? 8 : 1;
  if (side < least) {
    throw Error(ErrorCode::kUsage, Join("--template=", net_template, " needs images of at least ",
                                        least, "x", least, " pixels, and these have ", data.width,
                                        "x", data.height, "; use --template=mlp"));
  }
  settings.mirror = deep && data.channels == 3;
  // An eighth smaller than the stored image, so that training sees it shifted.
  if (deep && side >= kSmallSide) settings.crop = static_cast<int>(side / 8 * 7);
  settings.train_batch = std::clamp<int64_t>(data.train_records / 10, 1, 64);
  settings.test_batch = std::min<int64_t>(100, data.test_records);
  const int64_t epoch = (data.train_records + settings.train_batch - 1) / settings.train_batch;
  settings.max_iter = epoch * epochs;
  settings.test_interval = std::max<int64_t>(1, std::max(epoch, settings.max_iter / 20));
  return settings;
}

std::string NetText(const ProjectData& data, const TemplateSettings& settings) {
  const bool labels = settings.net_template != "autoencoder";
  LayerWriter net(Join("# ", settings.net_template, " for images of ", data.channels, "x",
                       data.height, "x", data.width,
                       labels ? Join(" in ", data.classes, " classes") : "",
                       ". Written by 'trainer new'; you can change it.\n"
                       "name: \"",
                       settings.name, "\"\n\n", DataLayerText(data, settings, true),
                       DataLayerText(data, settings, false)));
  if (settings.net_template == "mlp") WriteMlp(&net);
  if (settings.net_template == "lenet") WriteLeNet(&net);
  if (settings.net_template == "cnn") WriteCnn(SideOf(data, settings), &net);
  if (settings.net_template == "resnet18") WriteResNet18(SideOf(data, settings), &net);
  if (settings.net_template == "mobilenet_v2") WriteMobileNetV2(SideOf(data, settings), &net);
  if (!labels) {
    WriteAutoencoder(data, settings, &net);
    return net.text();
  }
  net.InnerProduct("score", data.classes, "a score for each class");
  const std::string score = net.top();
  net.Layer("loss", "SoftmaxWithLoss", {score, "label"}, "", "minimised by training");
  net.Layer("accuracy", "Accuracy", {score, "label"}, "  include { phase: TEST }\n",
            "share of correct answers");
  if (data.classes > 10) {
    net.Layer("top5", "Accuracy", {score, "label"},
              "  accuracy_param { top_k: 5 }\n  include { phase: TEST }\n",
              "share of images with the correct class among the five best answers");
  }
  return net.text();
}

std::string SolverText(const ProjectData& data, const TemplateSettings& settings,
                       const std::string& net, const std::string& snapshot_prefix) {
  const bool deep = IsDeep(settings.net_template);
  const bool adam = settings.net_template == "autoencoder" || settings.net_template == "mlp";
  const double lr = adam                             ? 0.001
                    : settings.net_template == "cnn" ? 0.05
                    : deep                           ? 0.1 * settings.train_batch / 256.0
                                                     : 0.01;
  const int64_t warmup = deep ? std::min<int64_t>(settings.max_iter / 20 + 1, 500) : 0;
  std::vector<std::pair<std::string, std::string>> lines = {
      {Join("net: \"", net, "\""), ""},
      {Join("test_interval: ", settings.test_interval),
       Join("iterations between tests, each over all ", data.test_records, " test images")},
      {"", ""},
      {Join("type: \"", adam ? "Adam" : "SGD", "\""), "the update rule"},
      {Join("base_lr: ", static_cast<float>(lr)), "the highest learning rate"},
      {"lr_policy: \"cosine\"", "the learning rate falls to 0 at max_iter like half a cosine"}};
  if (warmup > 0) {
    lines.emplace_back(Join("warmup_iter: ", warmup),
                       "the learning rate rises from 0 during these first iterations");
  }
  lines.insert(
      lines.end(),
      {{"momentum: 0.9", adam ? "Adam's beta1" : "share of the previous step that is added"},
       {Join("weight_decay: ", adam   ? 0.0
                               : deep ? 0.0001
                                      : 0.0005),
        "pulls weights towards 0"},
       {Join("max_iter: ", settings.max_iter),
        Join(settings.max_iter * settings.train_batch / data.train_records, " passes over ",
             data.train_records, " images in batches of ", settings.train_batch)},
       {"random_seed: 1", "the same weights in each run"},
       {Join("test_initialization: ", deep ? "false" : "true"),
        deep ? "no test before training: BatchNorm has no statistics yet"
             : "a test before training, for comparison"},
       {"", ""},
       {Join("display: ", std::max<int64_t>(1, settings.max_iter / 100)),
        "iterations between lines of the log"},
       {Join("snapshot: ", settings.test_interval),
        "a snapshot at each test, of which these stay:"},
       {"keep_last: 2", "the newest ones"},
       {"keep_best: 1", "the one with the best test"},
       {Join("snapshot_prefix: \"", snapshot_prefix, "\""), "where snapshots are saved"},
       {"solver_mode: CPU", "or GPU"}});
  std::string text = Join("# Trains ", net, ". Written by 'trainer new'; you can change it.\n");
  for (const auto& [field, comment] : lines) {
    text += Join(field, comment.empty() ? "" : "  # " + comment, "\n");
  }
  return text;
}

}  // namespace trainer
