// Reads the wire format itself instead of filling a caffe::Datum, which would copy the pixels.

#include "trainer/storage/datum.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <climits>
#include <cmath>

#include "datum.pb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"

namespace trainer {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr uint32_t Tag(int field, WireFormatLite::WireType type) {
  return static_cast<uint32_t>(field) << 3 | type;
}
constexpr auto kVarint = WireFormatLite::WIRETYPE_VARINT;
constexpr auto kFixed32 = WireFormatLite::WIRETYPE_FIXED32;
constexpr auto kLength = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;

template <WireFormatLite::FieldType type, class T>
bool ReadScalar(CodedInputStream& in, T* value) {
  return WireFormatLite::ReadPrimitive<T, type>(&in, value);
}

// The view is of the stream's own memory.
bool ReadView(CodedInputStream& in, std::string_view* view) {
  int length = 0, present = 0;
  const void* start = nullptr;
  if (!in.ReadVarintSizeAsInt(&length)) return false;
  in.GetDirectBufferPointerInline(&start, &present);
  if (present < length) return false;
  *view = {static_cast<const char*>(start), static_cast<size_t>(length)};
  return in.Skip(length);
}

constexpr int kLabelsField = caffe::Datum::kLabelsFieldNumber;

bool ReadPackedFloats(CodedInputStream& in, std::vector<float>* floats) {
  std::string_view packed;
  if (!ReadView(in, &packed) || packed.size() % 4 != 0) return false;
  const size_t before = floats->size();
  floats->resize(before + packed.size() / 4);
  std::ranges::copy(packed, reinterpret_cast<char*>(floats->data() + before));  // little-endian
  return true;
}

[[noreturn]] void FailDatum(const std::string& path, std::string_view key,
                            const std::string& what) {
  throw Error(ErrorCode::kData, {path}, Join("record ", QuoteKey(key), " ", what));
}

[[noreturn]] void FailNoDatum(const std::string& path, std::string_view key, size_t bytes) {
  FailDatum(
      path, key,
      Join("is not a Datum: its ", bytes,
           " bytes cannot be parsed; the database is damaged, or it is not a database of Caffe"));
}

// C * H * W, or -1 when a length is below 1 or the product is absurd.
int64_t CountOf(const DatumView& d) {
  if (d.channels < 1 || d.height < 1 || d.width < 1) return -1;
  const int64_t plane = int64_t{d.height} * d.width;
  return plane > INT_MAX / d.channels ? -1 : plane * d.channels;
}

}  // namespace

std::string DatumView::ShapeText() const { return Join(channels, "x", height, "x", width); }

caffe::Datum EmptyDatum(int channels, int height, int width) {
  caffe::Datum datum;
  datum.set_channels(channels);
  datum.set_height(height);
  datum.set_width(width);
  return datum;
}

void SetLabels(const DatumView& from, caffe::Datum* to) {
  to->mutable_labels()->Assign(from.labels.begin(), from.labels.end());
  if (from.has_label && from.labels.empty()) to->set_label(from.label);
}

std::optional<int32_t> IntegerLabel(float number) {
  if (std::floor(number) != number || std::fabs(number) >= 0x1p31f) return std::nullopt;
  return static_cast<int32_t>(number);
}

void SetLabels(std::span<const float> numbers, caffe::Datum* to) {
  to->clear_label();
  to->clear_labels();
  if (const auto label = numbers.size() == 1 ? IntegerLabel(numbers[0]) : std::nullopt) {
    to->set_label(*label);
  } else {
    to->mutable_labels()->Add(numbers.begin(), numbers.end());
  }
}

DatumView ViewOf(const Image& image) {
  DatumView view;
  view.channels = image.channels;
  view.height = image.height;
  view.width = image.width;
  view.floats = image.floats;
  if (image.floats.empty()) {
    view.bytes = {reinterpret_cast<const char*>(image.pixels.data()),
                  static_cast<size_t>(image.channels * image.Plane())};
  }
  return view;
}

DatumView ViewOf(const Image& image, const DecodedRegion& held) {
  DatumView view = ViewOf(image);
  if (view.height == held.picture_height && view.width == held.picture_width) return view;
  view.part = {held.top, held.left, view.height, view.width, held.scale_denom};
  view.height = held.picture_height;
  view.width = held.picture_width;
  return view;
}

// False if it is no Datum. Unknown fields are skipped, the last of repeated scalars counts.
bool DatumParser::Decode(std::string_view value) {
  view_ = DatumView{};
  encoded_ = false;
  floats_.clear();
  labels_.clear();
  CodedInputStream in(reinterpret_cast<const uint8_t*>(value.data()),
                      static_cast<int>(value.size()));
  while (const uint32_t tag = in.ReadTag()) {
    bool ok = true;
    switch (tag) {
      case Tag(1, kVarint):
        ok = ReadScalar<WireFormatLite::TYPE_INT32>(in, &view_.channels);
        break;
      case Tag(2, kVarint):
        ok = ReadScalar<WireFormatLite::TYPE_INT32>(in, &view_.height);
        break;
      case Tag(3, kVarint):
        ok = ReadScalar<WireFormatLite::TYPE_INT32>(in, &view_.width);
        break;
      case Tag(4, kLength):
        ok = ReadView(in, &view_.bytes);
        break;
      case Tag(5, kVarint):
        ok = view_.has_label = ReadScalar<WireFormatLite::TYPE_INT32>(in, &view_.label);
        break;
      case Tag(6, kFixed32):
        ok = ReadScalar<WireFormatLite::TYPE_FLOAT>(in, &floats_.emplace_back());
        break;
      case Tag(6, kLength):
        ok = ReadPackedFloats(in, &floats_);
        break;
      case Tag(7, kVarint):
        ok = ReadScalar<WireFormatLite::TYPE_BOOL>(in, &encoded_);
        break;
      case Tag(kLabelsField, kFixed32):
        ok = ReadScalar<WireFormatLite::TYPE_FLOAT>(in, &labels_.emplace_back());
        break;
      case Tag(kLabelsField, kLength):
        ok = ReadPackedFloats(in, &labels_);
        break;
      default:
        ok = WireFormatLite::SkipField(&in, tag);
    }
    if (!ok) return false;
  }
  view_.floats = floats_;
  view_.labels = labels_;
  view_.has_label |= !labels_.empty();
  return in.ConsumedEntireMessage();
}

std::optional<int32_t> ReadDatumLabel(const std::string& path, std::string_view key,
                                      std::string_view value) {
  if (value.size() > INT_MAX) FailNoDatum(path, key, value.size());
  CodedInputStream in(reinterpret_cast<const uint8_t*>(value.data()),
                      static_cast<int>(value.size()));
  std::optional<int32_t> label;
  while (const uint32_t tag = in.ReadTag()) {
    const bool ok = tag == Tag(5, kVarint)
                        ? ReadScalar<WireFormatLite::TYPE_INT32>(in, &label.emplace())
                        : WireFormatLite::SkipField(&in, tag);
    if (!ok) FailNoDatum(path, key, value.size());
  }
  if (!in.ConsumedEntireMessage()) FailNoDatum(path, key, value.size());
  return label;
}

const DatumView& DatumParser::Parse(const std::string& path, std::string_view key,
                                    std::string_view value, const CropChooser* choose) {
  const auto fail = [&](const std::string& what) { FailDatum(path, key, what); };
  if (value.size() > INT_MAX || !Decode(value)) FailNoDatum(path, key, value.size());
  if (view_.bytes.empty() && view_.floats.empty()) {
    fail("is empty: it has neither data nor float_data");
  }
  if (!view_.bytes.empty() && !view_.floats.empty()) {
    fail("has both data and float_data; it must have only one of them");
  }
  if (encoded_ && view_.floats.empty()) {
    DecodedRegion held;
    DecodeImage(view_.bytes, colors_, {path}, Join("record ", QuoteKey(key)), &image_, depth_,
                choose, &held);
    DatumView image = ViewOf(image_, held);
    image.label = view_.label;
    image.labels = view_.labels;
    image.has_label = view_.has_label;
    view_ = image;
    return view_;
  }
  const int64_t want = CountOf(view_);
  const size_t have = view_.bytes.empty() ? view_.floats.size() : view_.bytes.size();
  if (want < 0) {
    fail(Join("has the shape ", view_.ShapeText(),
              "; each dimension must be at least 1 and the record must be smaller than 2 GiB"));
  }
  if (static_cast<size_t>(want) != have) {
    fail(Join("has ", have, view_.bytes.empty() ? " floats" : " bytes", ", but its shape ",
              view_.ShapeText(), " needs ", want));
  }
  return view_;
}

}  // namespace trainer
