#include "trainer/config/batch_size.h"

#include <google/protobuf/descriptor.h>

#include <vector>

namespace trainer {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void ChangeBatchSizes(caffe::LayerParameter* layer, bool shapes,
                      const std::function<int64_t(int64_t)>& change) {
  std::vector<const FieldDescriptor*> fields;
  layer->GetReflection()->ListFields(*layer, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    Message* const param = layer->GetReflection()->MutableMessage(layer, field);
    const FieldDescriptor* const batch = param->GetDescriptor()->FindFieldByName("batch_size");
    if (batch == nullptr || !param->GetReflection()->HasField(*param, batch)) continue;
    const uint32_t size = param->GetReflection()->GetUInt32(*param, batch);
    param->GetReflection()->SetUInt32(param, batch, static_cast<uint32_t>(change(size)));
  }
  if (!shapes || !layer->has_dummy_data_param()) return;
  caffe::DummyDataParameter& drawn = *layer->mutable_dummy_data_param();
  for (caffe::BlobShape& shape : *drawn.mutable_shape()) {
    if (shape.dim_size() > 0) shape.set_dim(0, change(shape.dim(0)));
  }
  for (uint32_t& size : *drawn.mutable_num()) size = static_cast<uint32_t>(change(size));
}

}  // namespace trainer
