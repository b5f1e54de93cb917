#include "net_build.h"

#include <glog/logging.h>

#include <utility>

#include "trainer/base/text.h"
#include "trainer/config/upgrade.h"
#include "upgrade_layers.h"

namespace trainer {
namespace {

using ParseTree = google::protobuf::TextFormat::ParseInfoTree;

// Finds places of repeated fields of the net.
class NetPlaces {
 public:
  NetPlaces(std::string file, const ParseTree* tree) : file_(std::move(file)), tree_(tree) {}

  SourceRef Where(const char* name, int index) const {
    if (tree_ == nullptr) return {file_};
    const auto at = tree_->GetLocation(Field(name), index);
    return {file_, at.line + 1, at.line < 0 ? 0 : at.column + 1};
  }
  const ParseTree* Tree(const char* name, int index) const {
    return tree_ == nullptr ? nullptr : tree_->GetTreeForNested(Field(name), index);
  }

 private:
  static const google::protobuf::FieldDescriptor* Field(const char* name) {
    return caffe::NetParameter::descriptor()->FindFieldByName(name);
  }

  std::string file_;
  const ParseTree* tree_;
};

void AddOldLayers(const caffe::NetParameter& net, const NetPlaces& places, NetSpec* spec) {
  if (net.layers_size() == 0) return;
  if (net.layer_size() > 0) {
    throw Error(ErrorCode::kConfig, places.Where("layers", 0),
                Join("'layers' (the old form) and 'layer' (first in line ",
                     places.Where("layer", 0).line, ") cannot be mixed: write all as 'layer'"));
  }
  std::vector<OldLayer> old;
  for (int i = 0; i < net.layers_size(); ++i) {
    old.push_back({net.layers(i), places.Where("layers", i), places.Tree("layers", i)});
  }
  LOG(INFO) << spec->file << ": rewriting " << old.size() << " layers of the old 'layers' form";
  for (OldLayer& layer : RewriteOldest(std::move(old))) {
    spec->layers.emplace_back(RewriteOld(layer), layer.where, layer.tree);
  }
}

// `input` with `input_shape` or `input_dim` becomes an Input layer in front.
void AddInput(const caffe::NetParameter& net, const NetPlaces& places, NetSpec* spec) {
  if (net.input_size() == 0) return;
  const SourceRef where = places.Where("input", 0);
  const bool shapes = net.input_shape_size() > 0;
  if (!shapes && net.input_dim_size() == 0) return;  // a file of weights: no sizes, no layer
  if (shapes ? net.input_shape_size() != net.input_size() && net.input_shape_size() != 1
             : net.input_dim_size() != 4 * net.input_size()) {
    throw Error(
        ErrorCode::kConfig, where,
        Join(net.input_size(), " inputs need ",
             shapes ? Join(net.input_size(), " input_shape (or one for all); there are ",
                           net.input_shape_size())
                    : Join(4 * net.input_size(), " input_dim; there are ", net.input_dim_size())));
  }
  LOG(INFO) << spec->file << ": rewriting the old 'input' fields as an Input layer";
  caffe::LayerParameter layer;
  layer.set_name("input");
  layer.set_type("Input");
  for (int i = 0; i < net.input_size(); ++i) {
    layer.add_top(net.input(i));
    if (shapes) continue;
    caffe::BlobShape* shape = layer.mutable_input_param()->add_shape();
    for (int d = 0; d < 4; ++d) shape->add_dim(net.input_dim(4 * i + d));
  }
  if (shapes) *layer.mutable_input_param()->mutable_shape() = net.input_shape();
  spec->layers.insert(spec->layers.begin(), LayerSpec(std::move(layer), where));
}

// Three ParamSpecs of a BatchNorm were once needed to freeze its averages.
void FreezeBatchNorm(caffe::LayerParameter* layer) {
  if (layer->type() != "BatchNorm" || layer->param_size() != 3) return;
  for (caffe::ParamSpec& param : *layer->mutable_param()) {
    param.set_lr_mult(0);
    param.set_decay_mult(0);
  }
}

}  // namespace

NetSpec BuildNet(caffe::NetParameter proto, const std::string& file, const ParseTree* tree) {
  NetSpec spec;
  spec.file = file;
  const NetPlaces places(file, tree);
  AddOldLayers(proto, places, &spec);
  for (int i = 0; i < proto.layer_size(); ++i) {
    spec.layers.emplace_back(std::move(*proto.mutable_layer(i)), places.Where("layer", i),
                             places.Tree("layer", i));
  }
  AddInput(proto, places, &spec);
  for (LayerSpec& layer : spec.layers) FreezeBatchNorm(&layer.mutable_proto());
  for (const char* name : {"layer", "layers", "input", "input_dim", "input_shape"}) {
    const auto* field = caffe::NetParameter::descriptor()->FindFieldByName(name);
    proto.GetReflection()->ClearField(&proto, field);
  }
  spec.proto = std::move(proto);
  return spec;
}

void UpgradeNet(caffe::NetParameter* net, const std::string& file) {
  if (net->layers_size() == 0 && net->input_size() == 0) return;
  NetSpec spec = BuildNet(std::move(*net), file, nullptr);
  *net = std::move(spec.proto);
  for (LayerSpec& layer : spec.layers) *net->add_layer() = std::move(layer.mutable_proto());
}

}  // namespace trainer
