#include "made_up_model.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "support/source_folder.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Turns `data` into a layer that produces images and labels of 0.
void MakeUp(const MadeUpModel& model, caffe::LayerParameter& data) {
  data.set_type("DummyData");
  data.clear_data_param();
  data.clear_transform_param();
  for (int i = 0; i < data.top_size(); ++i) {
    caffe::BlobShape& shape = *data.mutable_dummy_data_param()->add_shape();
    shape.add_dim(model.batch);
    for (const int64_t dim : model.image) {
      if (i == 0) shape.add_dim(dim);
    }
  }
}

}  // namespace

std::string NetText(const MadeUpModel& model) {
  const std::string path = Join(SourceFolder(), "/models/", model.folder, "/train_test.prototxt");
  caffe::NetParameter net, made;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(ReadFile(path, 1 << 20), &net));
  made = net;
  made.clear_layer();
  made.set_default_forward_type(model.type);
  for (caffe::LayerParameter layer : net.layer()) {
    if (layer.include_size() > 0 && layer.include(0).phase() == caffe::TEST) continue;
    layer.clear_include();
    if (model.small_products && layer.inner_product_param().num_output() > 1000) {
      layer.mutable_inner_product_param()->set_num_output(32);
    }
    if (layer.type() == "Data") MakeUp(model, layer);
    *made.add_layer() = layer;
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(made, &text);
  return text;
}

}  // namespace trainer
