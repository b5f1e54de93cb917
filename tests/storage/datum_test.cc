#include "trainer/storage/datum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "storage/test_data.h"

namespace trainer {
namespace {

using testing::ElementsAre;

class DatumTest : public testing::Test {
 protected:
  const DatumView& Parse(const std::string& value) {
    value_ = value;
    return parser_.Parse("db", "00000007", value_);
  }
  Thrown Refusal(const caffe::Datum& datum) {
    return Catch([&] { Parse(datum.SerializeAsString()); });
  }

  DatumParser parser_;
  std::string value_;
};

TEST_F(DatumTest, ReadsBytesWithoutCopyingThem) {
  const DatumView& view = Parse(MakeDatum(2, 1, 3, "abcdef", -5).SerializeAsString());
  EXPECT_EQ(view.ShapeText(), "2x1x3");
  EXPECT_EQ(view.bytes, "abcdef");
  EXPECT_GE(view.bytes.data(), value_.data());
  EXPECT_LE(view.bytes.data() + 6, value_.data() + value_.size());
  EXPECT_TRUE(view.has_label);
  EXPECT_EQ(view.label, -5);
  EXPECT_TRUE(view.floats.empty());
}

TEST_F(DatumTest, ReadsFloatsUnpackedAndPacked) {
  caffe::Datum datum = MakeDatum(1, 1, 2, "", 0);
  datum.clear_data();
  datum.clear_label();
  std::string head = datum.SerializeAsString();
  datum.add_float_data(1.5f);
  datum.add_float_data(-2);
  EXPECT_THAT(Parse(datum.SerializeAsString()).floats, ElementsAre(1.5f, -2.f));
  EXPECT_FALSE(Parse(datum.SerializeAsString()).has_label);
  const float values[] = {1.5f, -2};
  head += std::string("\x32\x08", 2) + std::string(reinterpret_cast<const char*>(values), 8);
  EXPECT_THAT(Parse(head).floats, ElementsAre(1.5f, -2.f));
}

TEST_F(DatumTest, ReadsSeveralLabelsUnpackedAndPacked) {
  caffe::Datum datum = MakeDatum(1, 1, 1, "x", 0);
  datum.clear_label();
  const std::string head = datum.SerializeAsString();
  datum.add_labels(0.25f);
  datum.add_labels(-7);
  EXPECT_THAT(Parse(datum.SerializeAsString()).labels, ElementsAre(0.25f, -7.f));
  EXPECT_TRUE(Parse(datum.SerializeAsString()).has_label);
  const float value = 3;
  const std::string unpacked = head + std::string("\xb5\xe6\x09", 3) +  // field 20070, 4 bytes
                               std::string(reinterpret_cast<const char*>(&value), 4);
  EXPECT_THAT(Parse(unpacked).labels, ElementsAre(3.f));
  EXPECT_TRUE(Parse(head).labels.empty());
  datum.set_data(Picture("rgb.png"));
  datum.set_encoded(true);
  EXPECT_THAT(Parse(datum.SerializeAsString()).labels, ElementsAre(0.25f, -7.f));
}

TEST_F(DatumTest, AClassIsALabelThatIsA32BitInteger) {
  EXPECT_EQ(IntegerLabel(-3), -3);
  EXPECT_EQ(IntegerLabel(2147483520.0f), 2147483520);
  for (const float number : {0.5f, 2147483648.0f, -2147483648.0f, HUGE_VALF, NAN}) {
    EXPECT_EQ(IntegerLabel(number), std::nullopt) << number;
  }
}

TEST_F(DatumTest, SkipsUnknownFields) {
  caffe::Datum datum = MakeDatum(1, 1, 1, "x", 3);
  const std::string extra("\xa2\x06\x03zzz\xa8\x06\x07", 9);  // fields 100 and 101
  EXPECT_EQ(Parse(extra + datum.SerializeAsString() + extra).label, 3);
}

TEST_F(DatumTest, ReadsALabelWithoutTheValues) {
  const auto label = [](const std::string& value) {
    return ReadDatumLabel("db", "00000007", value);
  };
  const std::string bytes = MakeDatum(2, 1, 3, "abcdef", -5).SerializeAsString();
  EXPECT_EQ(label(bytes), -5);
  EXPECT_EQ(label(bytes + MakeDatum(1, 1, 1, "x", 9).SerializeAsString()), 9);  // the last counts
  caffe::Datum unlabelled = MakeDatum(1, 1, 1, "x", 0);
  unlabelled.clear_label();
  EXPECT_EQ(label(unlabelled.SerializeAsString()), std::nullopt);
  EXPECT_THAT(Catch([&] { label(bytes.substr(0, bytes.size() - 1)); }),
              Refuses(ErrorCode::kData, "record '00000007' is not a Datum: its "));
}

// Protobuf's own parser is the oracle: both must accept the same bytes and read the same values.
TEST_F(DatumTest, AgreesWithProtobufOnDamagedRecords) {
  caffe::Datum datum = MakeDatum(1, 2, 2, "abcd", 300);
  datum.set_encoded(false);
  datum.add_float_data(2.5f);
  const std::string good = datum.SerializeAsString();
  int accepted = 0;
  const auto compare = [&](const std::string& bytes) {
    caffe::Datum want;
    const bool parses = want.ParseFromString(bytes);
    const Thrown thrown = Catch([&] { Parse(bytes); });
    const bool refused = thrown.text.find("is not a Datum") != std::string::npos;
    ASSERT_EQ(parses, !refused) << testing::PrintToString(bytes);
    if (thrown.code != 0) return;
    ++accepted;
    const DatumView& view = Parse(bytes);
    EXPECT_EQ(view.bytes, want.data());
    EXPECT_THAT(view.floats, testing::ElementsAreArray(want.float_data()));
    EXPECT_EQ(view.label, want.label());
    EXPECT_EQ(view.has_label, want.has_label());
    EXPECT_EQ(view.channels, want.channels());
    EXPECT_EQ(view.height, want.height());
    EXPECT_EQ(view.width, want.width());
  };
  for (const bool floats : {false, true}) {
    floats ? datum.clear_data() : datum.clear_float_data();
    if (floats) {
      for (int i = 0; i < 4; ++i) datum.add_float_data(static_cast<float>(i));
    }
    const std::string bytes = datum.SerializeAsString();
    for (size_t length = 0; length <= bytes.size(); ++length) compare(bytes.substr(0, length));
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (int value = 0; value < 256; ++value) {
        std::string bad = bytes;
        bad[i] = static_cast<char>(value);
        compare(bad);
      }
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST_F(DatumTest, NamesDatabaseAndRecord) {
  EXPECT_THAT(Catch([&] { Parse("\x0f"); }),
              Refuses(ErrorCode::kData, "db: record '00000007' is not a Datum: its 1 bytes"));
}

TEST_F(DatumTest, RefusesACountThatIsNotTheShapes) {
  EXPECT_THAT(Refusal(MakeDatum(3, 2, 2, "short", 0)),
              Refuses(ErrorCode::kData, "5 bytes, but its shape 3x2x2 needs"));
  caffe::Datum datum = MakeDatum(1, 1, 3, "", 0);
  datum.add_float_data(1);
  EXPECT_THAT(Refusal(datum), Refuses(ErrorCode::kData, "1 floats, but its shape 1x1x3 needs"));
}

TEST_F(DatumTest, RefusesNoNumbersAndTwoKindsOfThem) {
  EXPECT_THAT(Refusal(MakeDatum(1, 1, 1, "", 0)), Refuses(ErrorCode::kData, "is empty"));
  caffe::Datum datum = MakeDatum(1, 1, 1, "x", 0);
  datum.add_float_data(1);
  EXPECT_THAT(Refusal(datum), Refuses(ErrorCode::kData, "both data and float_data"));
}

TEST_F(DatumTest, RefusesImpossibleShapes) {
  for (const auto& [c, h, w] : {std::tuple{0, 1, 1},
                                {1, -1, 1},
                                {1, 1, 0},
                                {INT_MAX, INT_MAX, 2},
                                {INT_MAX, INT_MAX, INT_MAX}}) {
    EXPECT_THAT(Refusal(MakeDatum(c, h, w, "x", 0)),
                Refuses(ErrorCode::kData, "each dimension must be at least 1"));
  }
}

// --- Encoded images ---

caffe::Datum EncodedDatum(const std::string& bytes, int label) {
  caffe::Datum datum;
  datum.set_encoded(true);
  datum.set_data(bytes);
  datum.set_label(label);
  return datum;
}

TEST_F(DatumTest, DecodesEncodedImagesAsStored) {
  EXPECT_EQ(Parse(EncodedDatum(Picture("rgb.jpg"), 4).SerializeAsString()).ShapeText(), "3x7x11");
  const DatumView& gray = Parse(EncodedDatum(Picture("gray.png"), 5).SerializeAsString());
  EXPECT_EQ(gray.ShapeText(), "1x7x11");
  EXPECT_EQ(gray.label, 5);
  EXPECT_TRUE(gray.has_label);
  const std::string pixels = Picture("gray.pgm").substr(12);  // the same picture
  EXPECT_EQ(gray.bytes, pixels);
}

TEST_F(DatumTest, DecodesToTheWantedColours) {
  const std::string gray = EncodedDatum(Picture("gray.png"), 0).SerializeAsString();
  const std::string rgb = EncodedDatum(Picture("rgb.png"), 0).SerializeAsString();
  EXPECT_EQ(DatumParser(ColorMode::kColor).Parse("db", "k", gray).ShapeText(), "3x7x11");
  EXPECT_EQ(DatumParser(ColorMode::kGray).Parse("db", "k", rgb).ShapeText(), "1x7x11");
}

TEST_F(DatumTest, AnEncodedImagesOwnShapeCounts) {
  caffe::Datum datum = EncodedDatum(Picture("rgb.png"), 0);
  datum.set_channels(1);
  datum.set_height(2);
  datum.set_width(3);
  EXPECT_EQ(Parse(datum.SerializeAsString()).ShapeText(), "3x7x11");
}

TEST_F(DatumTest, NamesTheRecordOfABadImage) {
  EXPECT_THAT(Refusal(EncodedDatum("GIF89a", 0)),
              Refuses(ErrorCode::kData, "db: record '00000007' is a GIF file, which is not"));
  EXPECT_THAT(Refusal(EncodedDatum(Picture("rgb.jpg").substr(0, 400), 0)),
              Refuses(ErrorCode::kData, "record '00000007' is a truncated JPEG file:"));
  EXPECT_THAT(Refusal(EncodedDatum("", 0)), Refuses(ErrorCode::kData, "is empty"));
}

}  // namespace
}  // namespace trainer
