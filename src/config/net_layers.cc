#include "trainer/config/net_layers.h"

#include <algorithm>
#include <map>

#include "connections.h"
#include "trainer/base/error/error_collector.h"
#include "trainer/base/text/text.h"
#include "trainer/config/layer_types.h"

namespace trainer {
namespace {

// The readers of one output.
struct Readers {
  int count = 0;          // bottoms, and one more for a loss weight
  float loss_weight = 0;  // loss weight of the output itself
  int next = 0;           // the next split output to assign
};

// Returns the loss weight of a top. A loss layer with one top and no weight counts with weight 1.
float LossWeight(const caffe::LayerParameter& layer, int top) {
  if (top < layer.loss_weight_size()) return layer.loss_weight(top);
  const bool implied =
      layer.loss_weight_size() == 0 && layer.top_size() == 1 && layer.type().ends_with("Loss");
  return implied ? 1 : 0;
}

// Returns "phase TRAIN, level 0, stages 'a', 'b'", for messages.
std::string TextOf(const caffe::NetState& state) {
  std::string text = Join("phase ", caffe::Phase_Name(state.phase()), ", level ", state.level());
  std::vector<std::string> stages;
  for (const std::string& stage : state.stage()) {
    if (!stage.empty()) stages.push_back(Join("'", stage, "'"));
  }
  if (!stages.empty()) text += Join(", stages ", JoinList(stages));
  return text;
}

// Inserts a Split layer after each output that several bottoms, or a bottom and a loss, read.
class Splitter {
 public:
  explicit Splitter(const LayersInState& net) : layers_(net.layers), sources_(Connect(net)) {
    for (const auto& bottoms : sources_) {
      for (const OutputRef& source : bottoms) ++readers_[source].count;
    }
    for (auto& [output, readers] : readers_) {
      const caffe::LayerParameter& layer = layers_[output.layer].proto();
      readers.loss_weight = LossWeight(layer, output.top);
      if (readers.loss_weight != 0) ++readers.count;
    }
  }

  // Returns the layers with the Split layers between them. To be called once.
  std::vector<LayerSpec> Run() {
    std::vector<LayerSpec> out;
    for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
      out.push_back(layers_[i]);
      caffe::LayerParameter& layer = out.back().mutable_proto();
      for (int j = 0; j < layer.bottom_size(); ++j) Redirect(sources_[i][j], &out.back(), j);
      const size_t at = out.size() - 1;
      for (int j = 0; j < layers_[i].proto().top_size(); ++j) {
        const auto readers = readers_.find({i, j});
        if (readers == readers_.end() || readers->second.count < 2) continue;
        MoveLossWeight(&readers->second, &out[at].mutable_proto(), j);
        out.push_back(MakeSplit({i, j}, readers->second));
      }
    }
    return out;
  }

 private:
  // Returns Caffe's name for a Split layer: <blob>_<producer>_<top index>_split.
  std::string SplitName(const OutputRef& output) const {
    const LayerSpec& layer = layers_[output.layer];
    return Join(layer.proto().top(output.top), "_", layer.name(), "_", output.top, "_split");
  }

  // Makes a bottom read the next free output of its source's Split layer. A source with one reader
  // needs no Split, so its reader keeps the name.
  void Redirect(const OutputRef& source, LayerSpec* layer, int bottom) {
    Readers& readers = readers_[source];
    if (readers.count < 2) return;
    const std::string part = Join(SplitName(source), "_", readers.next++);
    layer->SetWrittenName(part, layer->proto().bottom(bottom));
    layer->mutable_proto().set_bottom(bottom, part);
  }

  // Sets the loss weight of a split top to 0 and reserves output 0 of the Split, which carries the
  // loss from here on and so must not serve a bottom.
  static void MoveLossWeight(Readers* readers, caffe::LayerParameter* layer, int top) {
    if (readers->loss_weight == 0) return;
    while (layer->loss_weight_size() <= top) layer->add_loss_weight(0);
    layer->set_loss_weight(top, 0);
    ++readers->next;
  }

  // Returns the Split layer of an output. Messages name the output's own layer and blob instead.
  LayerSpec MakeSplit(const OutputRef& output, const Readers& readers) const {
    const LayerSpec& maker = layers_[output.layer];
    const caffe::LayerParameter& from = maker.proto();
    caffe::LayerParameter split;
    split.set_name(SplitName(output));
    split.set_type("Split");
    if (from.has_phase()) split.set_phase(from.phase());
    split.add_bottom(from.top(output.top));
    for (int k = 0; k < readers.count; ++k) {
      split.add_top(Join(split.name(), "_", k));
      if (readers.loss_weight != 0) split.add_loss_weight(k == 0 ? readers.loss_weight : 0);
    }
    LayerSpec spec(std::move(split), maker.Where("top", output.top));
    spec.SpeakFor(maker);
    for (const std::string& top : spec.proto().top()) {
      spec.SetWrittenName(top, from.top(output.top));
    }
    return spec;
  }

  const std::vector<LayerSpec>& layers_;
  std::vector<std::vector<OutputRef>> sources_;
  std::map<OutputRef, Readers> readers_;
};

}  // namespace

std::vector<LayerSpec> ConnectedLayers(const NetSpec& net, const caffe::NetState& state) {
  const std::vector<LayerSpec> layers = FilterLayers(net, state);
  std::vector<LayerSpec> connected;
  ErrorCollector wrong;
  if (wrong.Try([&] { connected = Splitter({layers, net.layers, TextOf(state)}).Run(); })) {
    return connected;
  }
  ErrorCollector all(TypeErrors(layers));
  all.Add(wrong.errors());
  all.Throw();
  return connected;
}

}  // namespace trainer
