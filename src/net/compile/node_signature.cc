#include "compile/node_signature.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "compile/at_layer.h"
#include "trainer/base/text/text.h"
#include "trainer/net/graph.h"

namespace trainer {
namespace {

std::string ParamKey(const LayerSpec& spec, int index) {
  if (index < spec.proto().param_size() && !spec.proto().param(index).name().empty()) {
    return spec.proto().param(index).name();
  }
  return Join(spec.name(), ":", index);
}

// A later user of a shared parameter uses the owner's memory and must agree with its settings.
void Share(trainer::Param& owner, const trainer::Param& wish, const LayerSpec& spec) {
  const bool permissive =
      wish.index < spec.proto().param_size() &&
      spec.proto().param(wish.index).share_mode() == caffe::ParamSpec::PERMISSIVE;
  const bool fits = permissive ? owner.count() == wish.count() : owner.shape == wish.shape;
  if (!fits || !(owner.layout == wish.layout)) {
    spec.Fail("param",
              Join("cannot share parameter '", owner.key, "' with layer '", owner.layer, "' (",
                   owner.where.ToString(), "): its shape there is ", owner.shape.ToString(),
                   ", here ", wish.shape.ToString(),
                   owner.layout == wish.layout ? "" : " for an image of another size"),
              wish.index);
  }
  const bool same_layer = owner.layer == wish.layer;  // of the training net and a test net
  auto agree = [&](const char* field, bool owner_has, float owner_value, bool has, float value) {
    if (owner_has && has && owner_value != value && !same_layer) {
      spec.Fail("param",
                Join("shared parameter '", owner.key, "' has ", field, " ", value, " here and ",
                     owner_value, " in layer '", owner.layer, "' (", owner.where.ToString(),
                     "); give the field in one place only"),
                wish.index);
    }
  };
  agree("lr_mult", owner.has_lr_mult, owner.lr_mult, wish.has_lr_mult, wish.lr_mult);
  agree("decay_mult", owner.has_decay_mult, owner.decay_mult, wish.has_decay_mult, wish.decay_mult);
  if (owner.weight != nullptr || same_layer) return;
  if (!owner.has_lr_mult && wish.has_lr_mult) {
    owner.lr_mult = wish.lr_mult;
    owner.has_lr_mult = true;
  }
  if (!owner.has_decay_mult && wish.has_decay_mult) {
    owner.decay_mult = wish.decay_mult;
    owner.has_decay_mult = true;
  }
}

// The context of one call of a layer's Setup.
class Describer final : public SetupContext {
 public:
  Describer(const Node& node, int number, const InputShapes& shapes, std::span<const DType> types,
            const NetOptions& options, ParamStore& params, std::vector<trainer::Param*>* new_params)
      : node_(node),
        number_(number),
        shapes_(shapes),
        types_(types),
        options_(options),
        params_(params),
        new_params_(new_params) {
    said_.in.resize(node.in.size());
    said_.out.resize(node.out.size());
  }

  NodeSignature Take() { return std::move(said_); }

  caffe::Phase phase() const override { return node_.spec.proto().phase(); }
  bool training() const override { return options_.training; }
  int NumInputs() const override { return static_cast<int>(said_.in.size()); }
  int NumOutputs() const override { return static_cast<int>(said_.out.size()); }
  const Shape& Input(int i) const override { return *shapes_[static_cast<size_t>(i)]; }
  DType InputType(int i) const override { return types_[static_cast<size_t>(i)]; }

  void Output(int i, const Shape& shape, DType dtype) override {
    NodeSignature::Output& out = OutputOf(i);
    out.shape = shape;
    out.dtype = dtype;
    out.view_of = -1;
    if (shape.Count() > 0) return;
    node_.spec.Fail(
        Join("output '", node_.spec.proto().top(i), "' would be empty: shape ", shape.ToString()));
  }
  void OutputView(int i, int j, const Shape& shape) override {
    if (shape.Count() != Input(j).Count()) {
      node_.spec.Fail(Join("output shape ", shape.ToString(),
                           " has a different number of values than the input ",
                           Input(j).ToString()));
    }
    Output(i, shape, InputType(j));
    OutputOf(i).view_of = j;
  }
  void OutputPersists(int i) override { OutputOf(i).persists = true; }
  void OutputIsDynamic(int i) override { OutputOf(i).is_dynamic = true; }
  void OutputKeepsF32(int i) override { OutputOf(i).keeps_f32 = true; }
  void SaveInput(int i) override { InputOf(i).kept = true; }
  void SaveOutput(int i) override { OutputOf(i).kept = true; }
  void AllowInPlace() override {
    said_.in_place = true;
    said_.grad_in_place = 0;
  }
  void AllowGradInPlace(int i) override { said_.grad_in_place = i; }
  void NotDifferentiable(int i) override { InputOf(i).no_gradient = true; }
  void Scratch(size_t bytes) override {
    said_.needs.scratch = std::max(said_.needs.scratch, bytes);
  }
  void Workspace(size_t bytes) override { said_.needs.workspace += bytes; }
  void State(size_t bytes) override { said_.state_bytes += bytes; }
  void Constants(std::span<const float> values) override {
    said_.constants.assign(values.begin(), values.end());
  }

  int Param(std::string_view, const Shape& shape, const caffe::FillerParameter& filler,
            const ParamOptions& options) override {
    const int index = static_cast<int>(said_.params.size());
    trainer::Param wish = Wish(shape, options, index);
    trainer::Param* param = params_.Find(wish.key);
    if (param != nullptr) {
      Share(*param, wish, node_.spec);
    } else if (new_params_ != nullptr) {
      wish.filler = filler;
      wish.owner_node = number_;
      param = &params_.Add(std::move(wish));
      new_params_->push_back(param);
    }
    said_.params.push_back(param);
    return index;
  }

 private:
  NodeSignature::Input& InputOf(int i) { return said_.in[static_cast<size_t>(i)]; }
  NodeSignature::Output& OutputOf(int i) { return said_.out[static_cast<size_t>(i)]; }

  trainer::Param Wish(const Shape& shape, const ParamOptions& options, int index) const {
    const LayerSpec& spec = node_.spec;
    trainer::Param param;
    param.key = ParamKey(spec, index);
    param.layer = spec.name();
    param.index = index;
    param.shape = shape;
    param.layout = options.layout;
    param.is_running_stat = options.is_running_stat;
    param.where = spec.Where("param", index);
    param.lr_mult = options.default_lr_mult;
    param.decay_mult = options.default_decay_mult;
    if (index < spec.proto().param_size()) {
      const caffe::ParamSpec& given = spec.proto().param(index);
      param.has_lr_mult = given.has_lr_mult();
      param.has_decay_mult = given.has_decay_mult();
      param.lr_mult = given.has_lr_mult() ? given.lr_mult() : 1;
      param.decay_mult = given.has_decay_mult() ? given.decay_mult() : 1;
    }
    return param;
  }

  const Node& node_;
  int number_;
  const InputShapes& shapes_;
  std::span<const DType> types_;
  const NetOptions& options_;
  ParamStore& params_;
  std::vector<trainer::Param*>* new_params_;
  NodeSignature said_;
};

// The context of one call of a layer's Prepare.
class Preparer final : public PrepareContext {
 public:
  Preparer(const MemoryNeeds& described, const NetOptions& options, const Device& device)
      : needs_(described), options_(options), device_(device) {}

  const MemoryNeeds& needs() const { return needs_; }

  const Device& device() const override { return device_; }
  bool training() const override { return options_.training; }
  void Scratch(size_t bytes) override { needs_.scratch = std::max(needs_.scratch, bytes); }
  void Workspace(size_t bytes) override { needs_.workspace += bytes; }
  void UploadMemory(size_t bytes) override { needs_.upload += bytes; }

 private:
  MemoryNeeds needs_;
  const NetOptions& options_;
  const Device& device_;
};

}  // namespace

NodeSignature SetupNode(const Node& node, int number, const InputShapes& shapes,
                        std::span<const DType> types, const NetOptions& options, ParamStore& params,
                        std::vector<Param*>* new_params) {
  Describer describer(node, number, shapes, types, options, params, new_params);
  AtLayer(node.spec, [&] { node.layer->Setup(describer); });
  return describer.Take();
}

MemoryNeeds PrepareNode(const Node& node, const NodeSignature& signature, const NetOptions& options,
                        const Device& device) {
  Preparer preparer(signature.needs, options, device);
  AtLayer(node.spec, [&] { node.layer->Prepare(preparer); });
  return preparer.needs();
}

}  // namespace trainer
