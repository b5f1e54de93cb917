#include <glog/logging.h>

#include <utility>

#include "net_build.h"
#include "trainer/base/text/text.h"
#include "trainer/config/upgrade/upgrade.h"

namespace trainer {

Upgrades UpgradeNet(caffe::NetParameter* net, const std::string& file,
                    const google::protobuf::TextFormat::ParseInfoTree* tree) {
  NetSpec spec = BuildNet(std::move(*net), file, tree);
  *net = std::move(spec.proto);
  for (LayerSpec& layer : spec.layers) *net->add_layer() = std::move(layer.mutable_proto());
  return std::move(spec.upgrades);
}

void LogUpgrades(const Upgrades& upgrades) {
  for (const std::string& text : upgrades.done) LOG(INFO) << EscapeControl(text);
  for (const std::string& text : upgrades.warnings) LOG(WARNING) << EscapeControl(text);
}

}  // namespace trainer
