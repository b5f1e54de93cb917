#include "trainer/config/blob.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "support/error_of.h"

namespace trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

caffe::BlobProto Blob(const std::string& text) {
  caffe::BlobProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

template <class T>
caffe::BlobProto Raw(caffe::Type type, const std::vector<T>& values) {
  caffe::BlobProto proto = Blob("shape { dim: " + std::to_string(values.size()) + " }");
  proto.set_raw_data_type(type);
  proto.set_raw_data(values.data(), values.size() * sizeof(T));
  return proto;
}

BlobData Read(const caffe::BlobProto& proto) {
  return ReadBlob(proto, {"net.caffemodel"}, BlobName("conv1", 0));
}

// Returns the message of an error, which must have the default code.
std::string Refusal(const caffe::BlobProto& proto) {
  const auto [code, message] = ErrorOf([&] { Read(proto); });
  EXPECT_EQ(code, ErrorCode::kData);
  return message;
}

TEST(BlobTest, ReadsShapeAndFloatsWithoutACopy) {
  const auto proto = Blob("shape { dim: 2 dim: 3 } data: [1, 2, 3, 4, 5, 6]");
  const BlobData blob = Read(proto);
  EXPECT_THAT(blob.dims, ElementsAre(2, 3));
  EXPECT_FALSE(blob.legacy);
  EXPECT_THAT(blob.values, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(blob.values.data(), proto.data().data());
}

TEST(BlobTest, ReadsTheFourOldFieldsBeforeTheShape) {
  const auto proto =
      Blob("num: 1 channels: 1 height: 2 width: 2 shape { dim: 4 } data: [1, 2, 3, 4]");
  const BlobData blob = Read(proto);
  EXPECT_THAT(blob.dims, ElementsAre(1, 1, 2, 2));
  EXPECT_TRUE(blob.legacy);
}

TEST(BlobTest, ReadsAScalarAndAnEmptyArray) {
  const auto scalar = Blob("data: 7");
  EXPECT_THAT(Read(scalar).dims, IsEmpty());
  EXPECT_THAT(Read(scalar).values, ElementsAre(7));
  EXPECT_THAT(Read(Blob("shape { dim: 0 dim: 5 }")).values, IsEmpty());
}

TEST(BlobTest, PrefersDoublesAndKeepsThemWhenMoved) {
  BlobData blob = Read(Blob("shape { dim: 2 } double_data: [0.5, -3] data: [9, 9]"));
  const BlobData moved = std::move(blob);
  EXPECT_THAT(moved.values, ElementsAre(0.5, -3));
}

TEST(BlobTest, WidensEveryKindOfRawData) {
  EXPECT_THAT(Read(Raw<float>(caffe::FLOAT, {1.5, -2})).values, ElementsAre(1.5, -2));
  EXPECT_THAT(Read(Raw<double>(caffe::DOUBLE, {1.5, -2})).values, ElementsAre(1.5, -2));
  EXPECT_THAT(Read(Raw<uint16_t>(caffe::BFLOAT16, {0x3fc0, 0xc000})).values, ElementsAre(1.5, -2));
  // The halves are one, minus two, the largest, the smallest normal, the smallest positive number
  // and minus zero.
  EXPECT_THAT(
      Read(Raw<uint16_t>(caffe::FLOAT16, {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000})).values,
      ElementsAre(1, -2, 65504, 0x1p-14f, 0x1p-24f, -0.0f));
}

TEST(BlobTest, RefusesRawDataOfOtherTypesOrSizes) {
  EXPECT_THAT(Refusal(Raw<int>(caffe::INT, {1})),
              HasSubstr("layer 'conv1', blob 0: raw_data_type is INT; only FLOAT, DOUBLE"));
  auto proto = Raw<float>(caffe::FLOAT, {1, 2});
  proto.mutable_raw_data()->pop_back();
  EXPECT_THAT(Refusal(proto), HasSubstr("raw_data has 7 bytes, which is not a multiple of 4"));
  EXPECT_THAT(Refusal(Raw<uint16_t>(caffe::FLOAT16, {0x7c00})), HasSubstr("number 0 is infinite"));
  EXPECT_THAT(Refusal(Raw<uint16_t>(caffe::FLOAT16, {0, 0x7e01})), HasSubstr("number 1 is NaN"));
}

TEST(BlobTest, RefusesACountThatDiffersFromTheShape) {
  EXPECT_EQ(Refusal(Blob("shape { dim: 2 dim: 3 } data: [1, 2, 3, 4, 5]")),
            "net.caffemodel: layer 'conv1', blob 0: it has 5 numbers, but its shape is 2 x 3; the "
            "file is damaged");
  EXPECT_THAT(Refusal(Blob("num: 1 channels: 2 height: 3 width: 4 data: 1")),
              HasSubstr("it has 1 numbers, but its shape is 1 x 2 x 3 x 4"));
  EXPECT_THAT(Refusal(Blob("data: [1, 2]")), HasSubstr("its shape is that of a single number"));
  EXPECT_THAT(Refusal(Blob("")), HasSubstr("it has 0 numbers"));
}

TEST(BlobTest, RefusesShapesThatNoMemoryHolds) {
  EXPECT_THAT(Refusal(Blob("shape { dim: -1 dim: -1 } data: 1")), HasSubstr("negative length -1"));
  EXPECT_THAT(Refusal(Blob("num: -2 channels: 1 height: 1 width: 1")),
              HasSubstr("negative length -2"));
  // 2^33 * 2^31 is 2^64, which overflows to 0.
  EXPECT_THAT(Refusal(Blob("shape { dim: 8589934592 dim: 2147483648 }")),
              HasSubstr("it has 0 numbers, but its shape is 8589934592 x 2147483648"));
  std::string many = "data: 1 shape {";
  for (int i = 0; i < 33; ++i) many += " dim: 1";
  EXPECT_THAT(Refusal(Blob(many + "}")), HasSubstr("it has 33 axes; at most 32 are allowed"));
}

TEST(BlobTest, NamesTheFirstNumberThatIsNotFinite) {
  auto proto = Blob("shape { dim: 10000 }");
  proto.mutable_data()->Resize(10000, 1.0f);
  EXPECT_EQ(Read(proto).values.size(), 10000u);
  proto.set_data(9000, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(Refusal(proto), HasSubstr("layer 'conv1', blob 0: number 9000 is NaN"));
  proto.set_data(4096, -std::numeric_limits<float>::infinity());
  EXPECT_THAT(Refusal(proto), HasSubstr("number 4096 is infinite"));
  // A double beyond the range of float becomes infinite.
  EXPECT_THAT(Refusal(Blob("shape { dim: 1 } double_data: 1e300")), HasSubstr("0 is infinite"));
}

TEST(BlobTest, ThrowsTheCodeThatTheCallerAsksFor) {
  const auto [code, message] =
      ErrorOf([] { ReadBlob(Blob(""), {"s"}, "history 3", ErrorCode::kBadSnapshot); });
  EXPECT_EQ(code, ErrorCode::kBadSnapshot);
  EXPECT_THAT(message, testing::StartsWith("s: history 3: "));
}

TEST(BlobTest, ReadsBackWhatItWrites) {
  const std::vector<int64_t> dims = {2, 1, 3};
  const std::vector<float> values = {1, -2, 3e-20f, 4, 5, 6e30f};
  auto proto = Blob("shape { dim: 9 } data: [1, 2]");
  WriteBlob(dims, values, &proto);
  const BlobData blob = Read(proto);
  EXPECT_EQ(blob.dims, dims);
  EXPECT_THAT(blob.values, testing::ElementsAreArray(values));
}

TEST(BlobTest, FitsTheSameShapeOrOnePaddedByTheOldFields) {
  const auto fits = [](const std::string& text, std::vector<int64_t> dims) {
    const auto proto = Blob(text);
    return FitsShape(Read(proto), dims);
  };
  const std::string old = "num: 1 channels: 1 height: 2 width: 3 data: [1, 2, 3, 4, 5, 6]";
  EXPECT_TRUE(fits(old, {1, 1, 2, 3}));
  EXPECT_TRUE(fits(old, {2, 3}));
  EXPECT_TRUE(fits(old, {1, 2, 3}));
  EXPECT_FALSE(fits(old, {6}));
  EXPECT_FALSE(fits(old, {3, 2}));
  EXPECT_FALSE(fits(old, {1, 1, 1, 2, 3}));
  EXPECT_TRUE(fits("num: 1 channels: 1 height: 1 width: 1 data: 1", {}));
  const std::string now = "shape { dim: 1 dim: 1 dim: 2 } data: [1, 2]";
  EXPECT_TRUE(fits(now, {1, 1, 2}));
  EXPECT_FALSE(fits(now, {2}));
}

TEST(ShapeTextTest, PrintsAsCaffeDoes) {
  const std::vector<int64_t> dims = {20, 1, 5, 5};
  EXPECT_EQ(ShapeText(dims), "20 1 5 5 (500)");
  EXPECT_EQ(ShapeText({}), "(1)");
}

}  // namespace
}  // namespace trainer
