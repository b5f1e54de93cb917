#include "zero_weights.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

bool IsZero(const ParamStore& store, const Param& param) {
  std::vector<float> values(static_cast<size_t>(param.count()));
  store.Export(param, param.weight, values);
  return std::ranges::all_of(values, [](float value) { return value == 0; });
}

}  // namespace

void WarnOfZeroWeights(const ParamStore& store, const std::vector<Param*>& params) {
  constexpr size_t kShown = 8;
  std::vector<std::string> layers;
  for (const Param* param : params) {
    const bool is_fixed = param->grad == nullptr && param->lr_mult == 0 && !param->is_running_stat;
    if (is_fixed && param->index == 0 && IsZero(store, *param)) layers.push_back(param->layer);
  }
  if (layers.empty()) return;
  const std::span<const std::string> all = layers;
  std::string names = JoinList(all.first(std::min(kShown, all.size())), ", ");
  if (all.size() > kShown) names += Join(" and ", all.size() - kShown, " more");
  LOG(WARNING) << EscapeControl(
      Join("The weights of ", names,
           " are all zero and are not trained (lr_mult: 0); load them from a file with --weights"));
}

}  // namespace trainer
