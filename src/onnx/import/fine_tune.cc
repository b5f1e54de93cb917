#include "trainer/onnx/fine_tune.h"

#include <algorithm>
#include <set>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using caffe::LayerParameter;

[[noreturn]] void RefuseTraining(const std::string& why) {
  throw Error(ErrorCode::kUsage, "--train: " + why);
}

// Returns the only Input layer, which must have one top of four axes.
const LayerParameter& ImageInput(const caffe::NetParameter& net) {
  const LayerParameter* input = nullptr;
  for (const LayerParameter& layer : net.layer()) {
    if (layer.type() != "Input") continue;
    if (input != nullptr)
      RefuseTraining("the model has several inputs; write their layers yourself");
    input = &layer;
  }
  if (input == nullptr || input->input_param().shape(0).dim_size() != 4) {
    RefuseTraining("the model's input is not images (N, C, H, W); write the data layer yourself");
  }
  return *input;
}

// Returns the last layer that writes `blob`, or -1.
int LastMaker(const caffe::NetParameter& net, const std::string& blob, int before) {
  for (int i = before; i-- > 0;) {
    for (const std::string& top : net.layer(i).top()) {
      if (top == blob) return i;
    }
  }
  return -1;
}

// Removes the layers at the end that turn scores into probabilities, and returns the scores' blob.
std::string RemoveProbabilities(caffe::NetParameter* net, std::string blob) {
  while (true) {
    const int maker = LastMaker(*net, blob, net->layer_size());
    if (maker < 0) return blob;
    const LayerParameter& layer = net->layer(maker);
    if (layer.type() != "Softmax" && layer.type() != "Log") return blob;
    blob = layer.bottom(0);
    net->mutable_layer()->DeleteSubrange(maker, 1);
  }
}

// Removes the layers on which `blob` does not depend.
void KeepAncestors(const std::string& blob, caffe::NetParameter* net) {
  std::set<std::string> needed = {blob};
  for (int i = net->layer_size(); i-- > 0;) {
    const LayerParameter& layer = net->layer(i);
    const bool wanted = std::ranges::any_of(
        layer.top(), [&](const std::string& top) { return needed.contains(top); });
    if (!wanted) {
      net->mutable_layer()->DeleteSubrange(i, 1);
      continue;
    }
    needed.insert(layer.bottom().begin(), layer.bottom().end());
  }
  std::set<std::string> read = {blob};
  for (const LayerParameter& layer : net->layer()) {
    read.insert(layer.bottom().begin(), layer.bottom().end());
  }
  LayerParameter silence;
  for (const LayerParameter& layer : net->layer()) {
    for (const std::string& top : layer.top()) {
      if (!read.contains(top)) silence.add_bottom(top);
    }
  }
  if (silence.bottom_size() == 0) return;
  silence.set_name("unused");
  silence.set_type("Silence");
  *net->add_layer() = silence;
}

// Returns the index of the last layer with a configurable number of outputs that leads to `blob`
// only through layers that do not mix classes: activations, pooling and reshapes. Returns -1 for
// other nets.
int FindLastLayer(const caffe::NetParameter& net, std::string blob) {
  for (int i = net.layer_size(); (i = LastMaker(net, blob, i)) >= 0;) {
    const LayerParameter& layer = net.layer(i);
    if (layer.type() == "InnerProduct" || layer.type() == "Convolution") return i;
    bool keeps_classes = false;
    for (const char* type : {"ReLU", "Pooling", "Flatten", "Reshape", "Dropout", "Clip"}) {
      keeps_classes = keeps_classes || layer.type() == type;
    }
    if (!keeps_classes) return -1;
    blob = layer.bottom(0);
  }
  return -1;
}

// Replaces the blob `old` by `blob` in all layers from `first` on, and in the score.
void ReplaceBlob(int first, const std::string& old, const std::string& blob,
                 caffe::NetParameter* net, std::string* score) {
  for (int i = first; i < net->layer_size(); ++i) {
    std::ranges::replace(*net->mutable_layer(i)->mutable_bottom(), old, blob);
    std::ranges::replace(*net->mutable_layer(i)->mutable_top(), old, blob);
  }
  if (*score == old) *score = blob;
}

// Removes the rectifiers that some nets have after layer `last`. With a rectifier, a class whose
// scores are all negative at the start would never learn.
void RemoveRectifiers(int last, caffe::NetParameter* net, std::string* score) {
  for (int i = net->layer_size(); --i > last;) {
    const LayerParameter layer = net->layer(i);
    if (layer.type() != "ReLU" && layer.type() != "Clip") continue;
    net->mutable_layer()->DeleteSubrange(i, 1);
    ReplaceBlob(i, layer.top(0), layer.bottom(0), net, score);
  }
}

// Gives layer `index` a new name, another number of outputs and new initial values.
void ReplaceLastLayer(int index, int64_t classes, FineTuneNet* tuned) {
  LayerParameter* const layer = tuned->net.mutable_layer(index);
  tuned->old_layer = layer->name();
  tuned->new_layer = layer->name() + "_new";
  const std::string old_top = layer->top(0);
  layer->set_name(tuned->new_layer);
  layer->set_top(0, tuned->new_layer);
  ReplaceBlob(index + 1, old_top, tuned->new_layer, &tuned->net, &tuned->score);
  caffe::FillerParameter filler;
  filler.set_type("gaussian");
  filler.set_std(0.01f);
  layer->clear_param();
  for (const float factor : {10.0f, 20.0f}) {
    layer->add_param()->set_lr_mult(factor);
    if (factor == 20) layer->mutable_param(1)->set_decay_mult(0);
  }
  const auto outputs = static_cast<uint32_t>(classes);
  if (layer->type() == "InnerProduct") {
    layer->mutable_inner_product_param()->set_num_output(outputs);
    layer->mutable_inner_product_param()->clear_bias_term();
    *layer->mutable_inner_product_param()->mutable_weight_filler() = filler;
  } else {
    layer->mutable_convolution_param()->set_num_output(outputs);
    layer->mutable_convolution_param()->clear_bias_term();
    layer->mutable_convolution_param()->clear_group();
    *layer->mutable_convolution_param()->mutable_weight_filler() = filler;
  }
}

// Returns the Data layer of one phase. It crops images to the size of the input; the training layer
// also mirrors them at random.
LayerParameter MakeDataLayer(const LayerParameter& input, const FineTuneOptions& options,
                             bool training) {
  const caffe::BlobShape& shape = input.input_param().shape(0);
  LayerParameter data;
  data.set_name("data");
  data.set_type("Data");
  data.add_top(input.top(0));
  data.add_top("label");
  data.add_include()->set_phase(training ? caffe::TRAIN : caffe::TEST);
  caffe::TransformationParameter* const transform = data.mutable_transform_param();
  if (training) transform->set_mirror(true);
  if (shape.dim(2) == shape.dim(3)) {
    transform->set_crop_size(static_cast<uint32_t>(shape.dim(2)));
  } else {
    transform->set_crop_h(static_cast<uint32_t>(shape.dim(2)));
    transform->set_crop_w(static_cast<uint32_t>(shape.dim(3)));
  }
  transform->mutable_mean_value()->Add(options.means.begin(), options.means.end());
  if (options.scale != 1) transform->set_scale(options.scale);
  caffe::DataParameter* const param = data.mutable_data_param();
  param->set_source(training ? options.source : options.test_source);
  const std::string& backend = training ? options.backend : options.test_backend;
  param->set_backend(backend == "LEVELDB" ? caffe::DataParameter::LEVELDB
                                          : caffe::DataParameter::LMDB);
  param->set_batch_size(static_cast<uint32_t>(training ? options.train_batch : options.test_batch));
  return data;
}

// Lets the convolution of the image learn as fast as in the model. TakeCaffePixels divided its
// weights by about 255 * 0.226, so that their gradients are larger by this factor, and the rate
// that suits the other layers would destroy these weights in a few steps.
void KeepPaceOfImageLayer(const std::string& image, caffe::NetParameter* net) {
  constexpr float kScale = 255 * 0.226f;
  for (LayerParameter& layer : *net->mutable_layer()) {
    if (layer.type() != "Convolution" || layer.bottom(0) != image) continue;
    if (layer.param_size() == 0) layer.add_param();
    layer.mutable_param(0)->set_lr_mult(1 / (kScale * kScale));
    layer.mutable_param(0)->set_decay_mult(kScale * kScale);
  }
}

// Appends the loss and, for tests, the accuracy.
void AddLoss(const FineTuneOptions& options, const std::string& score, caffe::NetParameter* net) {
  const auto add = [&](const char* name, const char* type) {
    LayerParameter* const layer = net->add_layer();
    layer->set_name(name);
    layer->set_type(type);
    layer->add_bottom(score);
    layer->add_bottom("label");
    layer->add_top(name);
    return layer;
  };
  add("loss", "SoftmaxWithLoss");
  if (options.test_source.empty()) return;
  add("accuracy", "Accuracy")->add_include()->set_phase(caffe::TEST);
  if (options.classes <= 10) return;
  LayerParameter* const top5 = add("top5", "Accuracy");
  top5->mutable_accuracy_param()->set_top_k(5);
  top5->add_include()->set_phase(caffe::TEST);
}

}  // namespace

FineTuneNet MakeFineTuneNet(const ImportedNet& imported, const FineTuneOptions& options) {
  if (imported.outputs.empty()) RefuseTraining("the model has no output");
  FineTuneNet tuned;
  caffe::NetParameter layers = imported.net;
  const LayerParameter input = ImageInput(layers);
  tuned.channels = input.input_param().shape(0).dim(1);
  // If a model has auxiliary outputs, only the first output is trained.
  tuned.score = RemoveProbabilities(&layers, imported.first_output);
  KeepAncestors(tuned.score, &layers);
  const int last = FindLastLayer(layers, tuned.score);
  if (last < 0) {
    RefuseTraining(Join("no layer with a score for each class leads to the output '",
                        EscapeControl(imported.first_output),
                        "'; write the loss and the last layer yourself"));
  }
  RemoveRectifiers(last, &layers, &tuned.score);
  tuned.net.set_name(imported.net.name());
  for (const bool training : {true, false}) {
    if (!training && options.test_source.empty()) continue;
    *tuned.net.add_layer() = MakeDataLayer(input, options, training);
  }
  int index = -1;
  for (int i = 0; i < layers.layer_size(); ++i) {
    if (layers.layer(i).type() == "Input") continue;
    if (i == last) index = tuned.net.layer_size();
    *tuned.net.add_layer() = layers.layer(i);
  }
  if (options.scale == 1 && std::ranges::equal(options.means, kTorchvisionMean)) {
    KeepPaceOfImageLayer(input.top(0), &tuned.net);
  }
  ReplaceLastLayer(index, options.classes, &tuned);
  AddLoss(options, tuned.score, &tuned.net);
  return tuned;
}

bool TakeCaffePixels(ImportedNet* imported) {
  constexpr double kDeviation[3] = {0.229, 0.224, 0.225};  // red, green, blue, for pixels in [0, 1]
  const LayerParameter* conv = nullptr;
  int readers = 0;
  std::string input;
  for (const LayerParameter& layer : imported->net.layer()) {
    if (layer.type() == "Input") {
      const caffe::BlobShape& shape = layer.input_param().shape(0);
      if (!input.empty() || shape.dim_size() != 4 || shape.dim(1) != 3) return false;
      input = layer.top(0);
    }
    for (const std::string& bottom : layer.bottom()) readers += bottom == input;
    if (layer.type() == "Convolution" && layer.bottom(0) == input) conv = &layer;
  }
  if (conv == nullptr || readers != 1 || conv->convolution_param().group() != 1) return false;
  for (LayerParameter& layer : *imported->weights.mutable_layer()) {
    if (layer.name() != conv->name()) continue;
    caffe::BlobProto* const weight = layer.mutable_blobs(0);
    const int outputs = static_cast<int>(weight->shape().dim(0));
    const int plane = weight->data_size() / outputs / 3;
    float* const values = weight->mutable_data()->mutable_data();
    for (int i = 0; i < outputs * 3 * plane; ++i) {
      const double deviation = 255 * kDeviation[i / plane % 3];
      values[i] = static_cast<float>(values[i] / deviation);
    }
    for (int o = 0; o < outputs; ++o) {
      float* const filter = values + static_cast<ptrdiff_t>(o) * 3 * plane;
      std::swap_ranges(filter, filter + plane, filter + ptrdiff_t{2} * plane);
    }
    return true;
  }
  return false;
}

std::string FineTuneSolverText(const FineTuneOptions& options, const std::string& net,
                               const std::string& solver, const std::string& weights,
                               const std::string& snapshot_prefix) {
  std::vector<std::string> lines = {
      Join("# Fine-tunes ", net, ". Written by 'trainer import'; you can change it."),
      Join("# trainer train --solver=", solver, " --weights=", weights, " --run=run"),
      "# With --freeze=all-but-last, only the new last layer learns: fast, and good for few "
      "images.",
      Join("net: \"", net, "\"")};
  if (!options.test_source.empty()) lines.push_back("test_interval_epoch: 1  # a test per epoch");
  for (const char* line :
       {"type: \"SGD\"", "base_lr: 0.001  # ten times as much for the new last layer (lr_mult)",
        "lr_policy: \"cosine\"  # the learning rate falls to 0 like half a cosine", "momentum: 0.9",
        "weight_decay: 0.0001", "max_epoch: 10  # passes over the training set",
        "random_seed: 1  # the same start of the last layer in each run", "display: 20",
        "snapshot_epoch: 1", "keep_last: 2"}) {
    lines.emplace_back(line);
  }
  if (!options.test_source.empty()) lines.push_back("keep_best: 1");
  lines.push_back(Join("snapshot_prefix: \"", snapshot_prefix, "\""));
  lines.push_back("solver_mode: CPU  # or GPU");
  return JoinList(lines, "\n") + "\n";
}

}  // namespace trainer
