#include "trainer/onnx/write_onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_folder.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr uint64_t kMaxFile = 1 << 20;

onnx::ModelProto ModelWithWeights(size_t bytes, size_t more_bytes) {
  onnx::ModelProto model;
  for (const size_t size : {bytes, more_bytes}) {
    onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
    tensor.set_name(Join("w", size));
    tensor.set_raw_data(std::string(size, 'w'));
  }
  return model;
}

TEST(WriteOnnxTest, ASmallModelIsOneFile) {
  const TempFolder folder;
  onnx::ModelProto model = ModelWithWeights(8, 5000);
  const std::string bytes = model.SerializeAsString();
  EXPECT_THAT(WriteOnnx(&model, folder / "m.onnx"), testing::ElementsAre(folder / "m.onnx"));
  EXPECT_EQ(ReadFile(folder / "m.onnx", kMaxFile), bytes);
}

TEST(WriteOnnxTest, TheWeightsOfALargeModelAreInASecondFileAtPages) {
  const TempFolder folder;
  onnx::ModelProto model = ModelWithWeights(5000, 2000);
  model.mutable_graph()->add_initializer()->set_raw_data("short");
  EXPECT_THAT(WriteOnnx(&model, folder / "m.onnx", {.max_bytes = 6000}),
              testing::ElementsAre(folder / "m.onnx", folder / "m.onnx.data"));
  onnx::ModelProto read;
  ASSERT_TRUE(read.ParseFromString(ReadFile(folder / "m.onnx", kMaxFile)));
  const onnx::TensorProto& second = read.graph().initializer(1);
  EXPECT_EQ(second.data_location(), onnx::TensorProto::EXTERNAL);
  EXPECT_FALSE(second.has_raw_data());
  std::string entries;
  for (const auto& entry : second.external_data()) {
    entries += Join(entry.key(), "=", entry.value(), " ");
  }
  EXPECT_EQ(entries, "location=m.onnx.data offset=8192 length=2000 ");
  EXPECT_EQ(read.graph().initializer(2).raw_data(), "short");
  const std::string data = ReadFile(folder / "m.onnx.data", kMaxFile);
  EXPECT_EQ(data.size(), 8192u + 2000u);
  EXPECT_EQ(data.substr(4999, 2), std::string("w\0", 2));
}

}  // namespace
}  // namespace trainer
