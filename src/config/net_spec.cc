#include "trainer/config/net_spec.h"

#include <algorithm>

#include "net_build.h"
#include "trainer/base/text/text.h"
#include "trainer/config/storage.h"

namespace trainer {
namespace {

bool HasStage(const caffe::NetState& state, const std::string& stage) {
  return std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
}

// Returns whether the state meets all conditions of a rule: the phase, the bounds of the level, all
// of its stages and none of not_stage.
bool Holds(const caffe::NetStateRule& rule, const caffe::NetState& state) {
  if (rule.has_phase() && rule.phase() != state.phase()) return false;
  if (rule.has_min_level() && state.level() < rule.min_level()) return false;
  if (rule.has_max_level() && state.level() > rule.max_level()) return false;
  const auto has = [&](const std::string& stage) { return HasStage(state, stage); };
  return std::all_of(rule.stage().begin(), rule.stage().end(), has) &&
         std::none_of(rule.not_stage().begin(), rule.not_stage().end(), has);
}

// Returns whether a layer is part of the net in this state: one of its include rules holds, or none
// of its exclude rules does. Throws kConfig for a layer with both kinds.
bool Keeps(const LayerSpec& layer, const caffe::NetState& state) {
  const auto& include = layer.proto().include();
  const auto& exclude = layer.proto().exclude();
  if (!include.empty() && !exclude.empty()) {
    layer.Fail("exclude", Join("it has include and exclude rules (include in line ",
                               layer.Where("include", 0).line, "); only one kind is allowed"));
  }
  const auto holds = [&](const caffe::NetStateRule& rule) { return Holds(rule, state); };
  return include.empty() ? std::none_of(exclude.begin(), exclude.end(), holds)
                         : std::any_of(include.begin(), include.end(), holds);
}

}  // namespace

void Upgrades::Append(const Upgrades& more) {
  done.insert(done.end(), more.done.begin(), more.done.end());
  warnings.insert(warnings.end(), more.warnings.begin(), more.warnings.end());
}

SourceRef NetSpec::Where(std::string_view field) const {
  const auto* known = caffe::NetParameter::descriptor()->FindFieldByName(std::string(field));
  if (known == nullptr || known->is_repeated()) {
    throw Error(ErrorCode::kInternal, Join("a net has no single field '", field, "'"));
  }
  if (tree == nullptr) return {file};
  const auto at = tree->GetLocation(known, -1);
  return at.line < 0 ? SourceRef{file} : SourceRef{file, at.line + 1, at.column + 1};
}

NetSpec LoadNet(const std::string& path, Overrides* overrides) {
  NetSpec spec = ReadNet(path);
  if (overrides != nullptr) {
    overrides->ApplyTo(&spec);
    overrides->CheckAllUsed();
  }
  CheckStorage(spec);
  return spec;
}

std::vector<LayerSpec> FilterLayers(const NetSpec& net, const caffe::NetState& state) {
  std::vector<LayerSpec> kept;
  for (const LayerSpec& layer : net.layers) {
    if (!Keeps(layer, state)) continue;
    kept.push_back(layer);
    if (!layer.proto().has_phase()) kept.back().mutable_proto().set_phase(state.phase());
  }
  return kept;
}

}  // namespace trainer
