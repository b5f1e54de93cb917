#include "trainer/config/net_state.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net_build.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/config/overrides.h"
#include "trainer/config/storage.h"
#include "trainer/config/text/prototxt.h"

namespace trainer {
namespace {

// Returns the stages that include and exclude rules name, sorted.
std::vector<std::string> StagesInRules(const NetSpec& net) {
  std::set<std::string> stages;
  for (const LayerSpec& layer : net.layers) {
    for (const auto* const rules : {&layer.proto().include(), &layer.proto().exclude()}) {
      for (const caffe::NetStateRule& rule : *rules) {
        stages.insert(rule.stage().begin(), rule.stage().end());
        stages.insert(rule.not_stage().begin(), rule.not_stage().end());
      }
    }
  }
  return {stages.begin(), stages.end()};
}

}  // namespace

NetSpec LoadNet(const NetSource& source) {
  Overrides overrides(source.set);
  NetSpec net = LoadNet(source.file, &overrides);
  RequireNamedStage(source.state.stages, net);
  return net;
}

NetSpec LoadNetText(const std::string& file, std::string content) {
  caffe::NetParameter proto;
  std::unique_ptr<ParsedText> text = ParseTextString(file, std::move(content), &proto);
  NetSpec spec = BuildNet(std::move(proto), file, &text->tree);
  spec.text = std::move(text);
  CheckStorage(spec);
  return spec;
}

caffe::NetState MakeNetState(caffe::Phase phase, const StateFlags& flags) {
  caffe::NetState state;
  state.set_phase(phase);
  state.set_level(flags.level);
  for (const std::string& stage : flags.stages) state.add_stage(stage);
  return state;
}

void RequireNamedStage(const std::vector<std::string>& stages, const NetSpec& net) {
  const std::vector<std::string> named = StagesInRules(net);
  if (stages.empty() || named.empty()) return;
  const auto is_named = [&](const std::string& stage) {
    return std::ranges::find(named, stage) != named.end();
  };
  if (std::ranges::any_of(stages, is_named)) return;
  throw Error(ErrorCode::kUsage,
              Join("--stage=", EscapeControl(JoinList(stages, ",")), ": no layer of ", net.file,
                   " uses this stage.", DidYouMean(stages[0], named), " The layers use ",
                   EscapeControl(JoinList(named))));
}

}  // namespace trainer
