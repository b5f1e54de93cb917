#include "trainer/layers/blob_forms.h"

#include <map>

namespace trainer {
namespace {

std::map<std::string, BlobAdapter>& Adapters() {
  static std::map<std::string, BlobAdapter> adapters;
  return adapters;
}

}  // namespace

bool AdaptBlobs(const LayerSpec& spec, const caffe::LayerParameter& stored, const std::string& file,
                caffe::LayerParameter* adapted) {
  const auto found = Adapters().find(spec.type());
  return found != Adapters().end() && found->second(spec, stored, file, adapted);
}

RegisterBlobForms::RegisterBlobForms(const char* type, BlobAdapter adapter) {
  Adapters().emplace(type, std::move(adapter));
}

}  // namespace trainer
