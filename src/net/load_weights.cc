#include "trainer/net/load_weights.h"

#include <glog/logging.h>

#include "trainer/base/text.h"

namespace trainer {

void CopyWeightsLogged(const caffe::NetParameter& model, const std::string& file,
                       std::span<Net* const> nets) {
  size_t loaded = 0;
  for (size_t i = 0; i < nets.size(); ++i) {
    const LoadReport report = nets[i]->CopyWeights(model, file);
    loaded += report.loaded.size();
    if (i > 0) continue;
    for (const std::string& layer : report.unused) LOG(INFO) << "Ignoring source layer " << layer;
    if (report.loaded.empty()) continue;
    LOG(INFO) << "Loaded " << report.loaded.size() << " layers";
    for (const std::string& layer : report.missing) {
      LOG(WARNING) << "Layer " << layer << " is not in the file: it keeps its initial values";
    }
  }
  if (loaded > 0) return;
  std::vector<std::string> names;
  for (const caffe::LayerParameter& layer : model.layer()) {
    if (layer.blobs_size() > 0) names.push_back(layer.name());
  }
  throw Error(ErrorCode::kData, {file},
              Join("no layer of this file has the name of a layer of the net. The file has: ",
                   names.empty() ? std::string("no weights at all") : JoinList(names)));
}

}  // namespace trainer
