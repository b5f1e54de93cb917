#include "batch_size.h"

#include <google/protobuf/descriptor.h>

#include <limits>
#include <set>

#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

std::vector<LayerSpec*> TrainingLayers(SolverSpec* spec) {
  std::set<std::string> kept;
  const auto key = [](const LayerSpec& layer) {
    return Join(layer.name(), "\n", layer.Where().ToString());
  };
  for (const LayerSpec& layer : FilterLayers(*spec->train.net, spec->train.state)) {
    kept.insert(key(layer));
  }
  std::vector<LayerSpec*> layers;
  for (NetSpec& net : spec->nets) {
    for (LayerSpec& layer : net.layers) {
      if (&net == spec->train.net && kept.contains(key(layer))) layers.push_back(&layer);
    }
  }
  return layers;
}

uint32_t GivenBatch::Get() const { return param->GetReflection()->GetUInt32(*param, field); }
void GivenBatch::Set(uint32_t batch) const {
  param->GetReflection()->SetUInt32(param, field, batch);
}

std::vector<GivenBatch> GivenBatches(SolverSpec* spec) {
  std::vector<GivenBatch> given;
  for (LayerSpec* layer : TrainingLayers(spec)) {
    caffe::LayerParameter& proto = layer->mutable_proto();
    std::vector<const FieldDescriptor*> fields;
    proto.GetReflection()->ListFields(proto, &fields);
    for (const FieldDescriptor* field : fields) {
      if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
      Message* const param = proto.GetReflection()->MutableMessage(&proto, field);
      const FieldDescriptor* const batch = param->GetDescriptor()->FindFieldByName("batch_size");
      if (batch != nullptr && param->GetReflection()->HasField(*param, batch)) {
        given.push_back({layer, param, batch});
      }
    }
  }
  return given;
}

// Zeros are refused where the net is built.
uint32_t BatchSizeOf(SolverSpec* spec) {
  for (const GivenBatch& given : GivenBatches(spec)) {
    if (given.Get() > 0) return given.Get();
  }
  return 0;
}

void SetBatchSize(uint32_t batch, SolverSpec* spec) {
  const uint64_t before = BatchSizeOf(spec);
  if (before == 0) {
    throw Error(ErrorCode::kUsage, {spec->train.net->file},
                "no data layer of the training net has a batch_size that could be changed; change "
                "the shapes in the file");
  }
  const std::vector<GivenBatch> all = GivenBatches(spec);
  for (const GivenBatch& given : all) {
    const uint64_t scaled = uint64_t{given.Get()} * batch;
    if (scaled % before != 0 || scaled / before > std::numeric_limits<int32_t>::max()) {
      throw Error(ErrorCode::kUsage, given.layer->Where(),
                  Join("layer '", given.layer->name(), "' has batch_size ", given.Get(),
                       " beside another one's ", before, ": with ", batch,
                       " there it would be no whole number; choose a multiple of ", before));
    }
  }
  for (const GivenBatch& given : all) {
    given.Set(static_cast<uint32_t>(uint64_t{given.Get()} * batch / before));
  }
}

}  // namespace trainer
