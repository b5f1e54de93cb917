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

bool IsFrozen(const LayerSpec& spec, const NetOptions& options) {
  return spec.proto().freeze() && options.keeps_frozen;
}

// A later user of a parameter takes the owner's memory and must agree with it.
void Share(Param& owner, const Param& wish, const LayerSpec& spec) {
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
  const bool is_frozen = owner.is_frozen || wish.is_frozen;
  if (!is_frozen) {
    agree("lr_mult", owner.has_lr_mult, owner.lr_mult, wish.has_lr_mult, wish.lr_mult);
  }
  agree("decay_mult", owner.has_decay_mult, owner.decay_mult, wish.has_decay_mult, wish.decay_mult);
  if (owner.weight != nullptr || same_layer) return;
  owner.is_frozen = is_frozen;
  owner.was_frozen = owner.was_frozen || wish.was_frozen;
  if (is_frozen) {
    owner.lr_mult = 0;
  } else if (!owner.has_lr_mult && wish.has_lr_mult) {
    owner.lr_mult = wish.lr_mult;
    owner.has_lr_mult = true;
  }
  if (!owner.has_decay_mult && wish.has_decay_mult) {
    owner.decay_mult = wish.decay_mult;
    owner.has_decay_mult = true;
  }
}

// The parameter that a layer declares, as it is where no layer has it yet.
Param NewParam(const LayerSpec& spec, int index, const NodeSignature::Parameter& declared,
               const NetOptions& options) {
  Param param;
  param.key = ParamKey(spec, index);
  param.layer = spec.name();
  param.index = index;
  param.shape = declared.shape;
  param.layout = declared.options.layout;
  param.is_learnable = declared.options.default_lr_mult != 0;
  param.is_running_stat = declared.options.is_running_stat;
  param.where = spec.Where("param", index);
  param.lr_mult = declared.options.default_lr_mult;
  param.decay_mult = declared.options.default_decay_mult;
  if (index < spec.proto().param_size()) {
    const caffe::ParamSpec& given = spec.proto().param(index);
    param.has_lr_mult = given.has_lr_mult();
    param.has_decay_mult = given.has_decay_mult();
    param.lr_mult = given.has_lr_mult() ? given.lr_mult() : 1;
    param.decay_mult = given.has_decay_mult() ? given.decay_mult() : 1;
  }
  const bool decays = options.decays_bias_and_norm || !declared.is_bias_or_scale;
  if (!decays && !param.has_decay_mult) param.decay_mult = 0;
  param.is_frozen = IsFrozen(spec, options);
  param.was_frozen = spec.proto().freeze() && !param.is_frozen;
  if (param.is_frozen) param.lr_mult = 0;
  return param;
}

}  // namespace

NodeSignature SetupNode(const Node& node, const InputShapes& shapes, std::span<const DType> types,
                        const NetOptions& options) {
  SetupContext context(node.spec, options.training, shapes, types, node.out.size(),
                       IsFrozen(node.spec, options));
  AtLayer(node.spec, [&] { node.layer->Setup(context); });
  return context.TakeSignature();
}

std::vector<Param*> ParamsOf(const Node& node, const NodeSignature& signature,
                             const NetOptions& options, ParamStore& store,
                             std::vector<Param*>* new_params, int number) {
  std::vector<Param*> params;
  for (const NodeSignature::Parameter& declared : signature.params) {
    Param wish = NewParam(node.spec, static_cast<int>(params.size()), declared, options);
    Param* param = store.Find(wish.key);
    if (param != nullptr) {
      Share(*param, wish, node.spec);
    } else if (new_params != nullptr) {
      wish.filler = declared.filler;
      wish.owner_node = number;
      param = &store.Add(std::move(wish));
      new_params->push_back(param);
    }
    params.push_back(param);
  }
  return params;
}

MemoryNeeds PrepareNode(const Node& node, const NodeSignature& signature, const NetOptions& options,
                        const Device& device) {
  PrepareContext context(device, options.training, signature.needs);
  AtLayer(node.spec, [&] { node.layer->Prepare(context); });
  return context.needs();
}

}  // namespace trainer
