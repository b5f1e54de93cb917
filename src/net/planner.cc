#include "planner.h"

#include <string>
#include <utility>

namespace trainer {
namespace {

std::string ParamKey(const LayerSpec& spec, int index) {
  if (index < spec.proto().param_size() && !spec.proto().param(index).name().empty()) {
    return spec.proto().param(index).name();
  }
  return Join(spec.name(), ":", index);
}

}  // namespace

trainer::Param Planner::Describe(const Shape& shape, const ParamOptions& options, int index) const {
  trainer::Param param;
  param.key = ParamKey(step_.spec, index);
  param.layer = step_.spec.name();
  param.index = index;
  param.shape = shape;
  param.layout = options.layout;
  param.where = step_.spec.Where("param", index);
  param.lr_mult = options.default_lr_mult;
  param.decay_mult = options.default_decay_mult;
  if (index < step_.spec.proto().param_size()) {
    const caffe::ParamSpec& spec = step_.spec.proto().param(index);
    param.has_lr_mult = spec.has_lr_mult();
    param.has_decay_mult = spec.has_decay_mult();
    param.lr_mult = spec.has_lr_mult() ? spec.lr_mult() : 1;
    param.decay_mult = spec.has_decay_mult() ? spec.decay_mult() : 1;
  }
  return param;
}

// A later user of a parameter takes the owner's memory and must agree with it.
void Planner::Share(trainer::Param& owner, const trainer::Param& wish) {
  const LayerSpec& spec = step_.spec;
  const bool permissive =
      wish.index < spec.proto().param_size() &&
      spec.proto().param(wish.index).share_mode() == caffe::ParamSpec::PERMISSIVE;
  const bool fits = permissive ? owner.count() == wish.count() : owner.shape == wish.shape;
  if (!fits || !(owner.layout == wish.layout)) {
    spec.Fail("param",
              Join("cannot share parameter '", owner.key, "' with layer '", owner.layer, "' (",
                   owner.where.ToString(), "): its shape there is ", owner.shape.ToString(),
                   ", here ", wish.shape.ToString(),
                   owner.layout == wish.layout ? "" : " over an image of another size"),
              wish.index);
  }
  const bool same_layer = owner.layer == wish.layer;  // a test net's twin of a training layer
  auto agree = [&](const char* field, bool owner_has, float owner_value, bool has, float value) {
    if (owner_has && has && owner_value != value && !same_layer) {
      spec.Fail("param",
                Join("shared parameter '", owner.key, "' has ", field, " ", value, " here and ",
                     owner_value, " in layer '", owner.layer, "' (", owner.where.ToString(),
                     "); write it once"),
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

int Planner::Param(std::string_view, const Shape& shape, const caffe::FillerParameter& filler,
                   const ParamOptions& options) {
  const int index = static_cast<int>(step_.params.size());
  trainer::Param wish = Describe(shape, options, index);
  trainer::Param* param = params_.Find(wish.key);
  if (param == nullptr) {
    wish.filler = filler;
    wish.owner_step = number_;
    param = &params_.Add(std::move(wish));
    graph_.fresh.push_back(param);
  } else {
    Share(*param, wish);
  }
  step_.params.push_back(param);
  return index;
}

}  // namespace trainer
