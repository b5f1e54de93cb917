#include "net_build.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "checks/ignored_fields.h"
#include "trainer/base/text/text.h"
#include "trainer/config/upgrade/upgrade.h"
#include "upgrade/upgrade_layers.h"

namespace trainer {
namespace {

using ParseTree = google::protobuf::TextFormat::ParseInfoTree;

// Finds places of repeated fields of the net.
class NetPlaces {
 public:
  NetPlaces(std::string file, const ParseTree* tree) : file_(std::move(file)), tree_(tree) {}

  // Returns the place of element `index` of a repeated field; only the file if its text does not
  // give it.
  SourceRef Where(const char* name, int index) const {
    if (tree_ == nullptr) return {file_};
    const auto at = tree_->GetLocation(Field(name), index);
    return {file_, at.line + 1, at.line < 0 ? 0 : at.column + 1};
  }
  // Returns the places inside element `index` of a repeated message, or null without a text file.
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

// Adds a report that begins with the file's name.
void NoteUpgrade(NetSpec* spec, const std::string& text) {
  spec->upgrades.done.push_back(Join(spec->file, ": ", text));
}

// Appends the layers of both old formats ('layers'), rewritten as of today. Throws kConfig if the
// net has layers of the old and of the new format.
void AddOldLayers(const caffe::NetParameter& net, const NetPlaces& places, NetSpec* spec) {
  if (net.layers_size() == 0) return;
  if (net.layer_size() > 0) {
    throw Error(ErrorCode::kConfig, places.Where("layers", 0),
                Join("'layers' (the old format) and 'layer' (first in line ",
                     places.Where("layer", 0).line, ") cannot be mixed: write all as 'layer'"));
  }
  std::vector<OldLayer> old;
  for (int i = 0; i < net.layers_size(); ++i) {
    old.push_back({net.layers(i), places.Where("layers", i), places.Tree("layers", i)});
  }
  const auto oldest =
      std::ranges::count_if(old, [](const OldLayer& layer) { return layer.proto.has_layer(); });
  if (oldest > 0) {
    NoteUpgrade(spec, Join("rewrote ", Counted(oldest, "layer"),
                           " of the oldest format ('layers { layer { } }')"));
  }
  const int64_t count = std::ssize(old);
  old = RewriteOldest(std::move(old), &spec->upgrades);
  if (const int64_t folded = count - std::ssize(old); folded > 0) {
    NoteUpgrade(
        spec, Join("folded ", Counted(folded, "padding layer"), " into the layers that read them"));
  }
  NoteUpgrade(spec, Join("rewrote ", Counted(std::ssize(old), "layer"),
                         " of the old 'layers' format as 'layer'"));
  for (OldLayer& layer : old) {
    spec->layers.emplace_back(RewriteOld(layer), layer.where, layer.tree);
  }
}

// Rewrites `input` with `input_shape` or `input_dim` as an Input layer at the front, and throws
// kConfig if their numbers do not match. Without sizes, drops `input`.
void AddInput(const caffe::NetParameter& net, const NetPlaces& places, NetSpec* spec) {
  if (net.input_size() == 0) return;
  const SourceRef where = places.Where("input", 0);
  const bool shapes = net.input_shape_size() > 0;
  if (!shapes && net.input_dim_size() == 0) {  // a file of weights: no sizes, no layer
    return NoteUpgrade(spec, "dropped the old 'input' fields, which give no sizes");
  }
  if (shapes ? net.input_shape_size() != net.input_size() && net.input_shape_size() != 1
             : net.input_dim_size() != 4 * net.input_size()) {
    throw Error(
        ErrorCode::kConfig, where,
        Join(net.input_size(), " inputs need ",
             shapes ? Join(net.input_size(), " input_shape (or one for all); there are ",
                           net.input_shape_size())
                    : Join(4 * net.input_size(), " input_dim; there are ", net.input_dim_size())));
  }
  NoteUpgrade(spec, "rewrote the old 'input' fields as an Input layer");
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

// Throws kConfig for more than 10,000 layers. This limit is far above the size of any net; planning
// takes time for each layer.
void CheckLayerCount(const caffe::NetParameter& net, const NetPlaces& places) {
  constexpr int kMaxLayers = 10000;
  for (const auto& [field, count] :
       {std::pair("layer", net.layer_size()), std::pair("layers", net.layers_size())}) {
    if (count <= kMaxLayers) continue;
    throw Error(ErrorCode::kConfig, places.Where(field, kMaxLayers),
                Join("the net has ", count, " layers; at most ", kMaxLayers, " are allowed"));
  }
}

// Sets the multipliers of a BatchNorm's statistics to 0, because they do not learn. Once three
// ParamSpecs were needed for this, and NVIDIA Caffe sets the ParamSpecs of its form with five
// parameters itself, whatever the file says. Returns whether that changed anything.
bool FreezeBatchNorm(caffe::LayerParameter* layer) {
  constexpr int kStatistics = 3;
  if (layer->type() != "BatchNorm") return false;
  const caffe::BatchNormParameter& norm = layer->batch_norm_param();
  const bool nvidia = norm.scale_bias() || norm.has_scale_filler() || norm.has_bias_filler();
  if (!nvidia && layer->param_size() != kStatistics) return false;
  bool changed = false;
  for (int i = 0; i < std::min(kStatistics, layer->param_size()); ++i) {
    caffe::ParamSpec& param = *layer->mutable_param(i);
    changed = changed || !param.has_lr_mult() || param.lr_mult() != 0 || !param.has_decay_mult() ||
              param.decay_mult() != 0;
    param.set_lr_mult(0);
    param.set_decay_mult(0);
  }
  return changed;
}

// Freezes the statistics of all BatchNorm layers and reports how many of them changed.
void FreezeBatchNorms(NetSpec* spec) {
  int frozen = 0;
  for (LayerSpec& layer : spec->layers) frozen += FreezeBatchNorm(&layer.mutable_proto()) ? 1 : 0;
  if (frozen == 0) return;
  NoteUpgrade(spec, Join("set lr_mult and decay_mult to 0 in the first three param of ",
                         Counted(frozen, "BatchNorm layer"), ", because they are its statistics"));
}

// Names appear in messages, logs, tables and other files. Control characters are escaped once,
// here, so that the code for these does not have to. Names that were equal stay equal, so blobs
// stay connected.
void EscapeNames(NetSpec* spec) {
  int64_t escaped = 0;
  const auto escape = [&](std::string* name) {
    std::string text = EscapeControl(*name);
    if (text == *name) return;
    *name = std::move(text);
    ++escaped;
  };
  if (spec->proto.has_name()) escape(spec->proto.mutable_name());
  for (LayerSpec& spec_of_layer : spec->layers) {
    caffe::LayerParameter& layer = spec_of_layer.mutable_proto();
    if (layer.has_name()) escape(layer.mutable_name());
    if (layer.has_type()) escape(layer.mutable_type());
    for (std::string& bottom : *layer.mutable_bottom()) escape(&bottom);
    for (std::string& top : *layer.mutable_top()) escape(&top);
    for (caffe::ParamSpec& param : *layer.mutable_param()) {
      if (param.has_name()) escape(param.mutable_name());
    }
  }
  if (escaped > 0) {
    NoteUpgrade(spec,
                Join("wrote the control characters of ", Counted(escaped, "name"), " as \\xNN"));
  }
}

}  // namespace

NetSpec BuildNet(caffe::NetParameter proto, const std::string& file, const ParseTree* tree) {
  NetSpec spec;
  spec.file = file;
  spec.tree = tree;
  const NetPlaces places(file, tree);
  CheckLayerCount(proto, places);
  AddOldLayers(proto, places, &spec);
  for (int i = 0; i < proto.layer_size(); ++i) {
    spec.layers.emplace_back(std::move(*proto.mutable_layer(i)), places.Where("layer", i),
                             places.Tree("layer", i));
  }
  AddInput(proto, places, &spec);
  FreezeBatchNorms(&spec);
  MoveBatchNormFillers(&spec.layers, &spec.upgrades);
  for (const LayerSpec& layer : spec.layers) WarnOfOldTransform(layer, &spec.upgrades);
  for (const char* name : {"layer", "layers", "input", "input_dim", "input_shape"}) {
    const auto* field = caffe::NetParameter::descriptor()->FindFieldByName(name);
    proto.GetReflection()->ClearField(&proto, field);
  }
  spec.proto = std::move(proto);
  EscapeNames(&spec);
  return spec;
}

NetSpec ReadNet(const std::string& path) {
  if (path.ends_with(".onnx")) {
    throw Error(ErrorCode::kConfig, {path},
                "this is a model in the format ONNX, not a net in prototxt; make one of it with "
                "'trainer import'");
  }
  caffe::NetParameter proto;
  std::unique_ptr<ParsedText> text = ParseText(path, &proto);
  NetSpec spec = BuildNet(std::move(proto), path, &text->tree);
  LogUpgrades(spec.upgrades);
  LogHints(spec);
  spec.text = std::move(text);
  return spec;
}

}  // namespace trainer
