// Reads the wire format itself instead of filling a caffe::Datum, which would copy the pixels.

#include "trainer/storage/datum.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <climits>

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

bool ReadInt32(CodedInputStream& in, int32_t* value) {
  uint64_t wide = 0;  // a negative int32 is written as ten bytes
  if (!in.ReadVarint64(&wide)) return false;
  *value = static_cast<int32_t>(wide);
  return true;
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

bool ReadFloat(CodedInputStream& in, std::vector<float>* floats) {
  uint32_t bits = 0;
  if (!in.ReadLittleEndian32(&bits)) return false;
  floats->push_back(WireFormatLite::DecodeFloat(bits));
  return true;
}

bool ReadPackedFloats(CodedInputStream& in, std::vector<float>* floats) {
  std::string_view packed;
  if (!ReadView(in, &packed) || packed.size() % 4 != 0) return false;
  const auto* bytes = reinterpret_cast<const uint8_t*>(packed.data());
  CodedInputStream inner(bytes, static_cast<int>(packed.size()));
  for (size_t i = 0; i < packed.size() / 4; ++i) ReadFloat(inner, floats);
  return true;
}

bool ReadFlag(CodedInputStream& in, bool* flag) {
  uint64_t value = 0;
  if (!in.ReadVarint64(&value)) return false;
  *flag = value != 0;
  return true;
}

// C * H * W, or -1 when a length is below 1 or the product is absurd.
int64_t CountOf(const DatumView& d) {
  if (d.channels < 1 || d.height < 1 || d.width < 1) return -1;
  const int64_t plane = int64_t{d.height} * d.width;
  return plane > INT_MAX / d.channels ? -1 : plane * d.channels;
}

}  // namespace

std::string DatumView::ShapeText() const { return Join(channels, "x", height, "x", width); }

DatumView ViewOf(const ImageView& image) {
  DatumView view;
  view.channels = image.channels;
  view.height = image.height;
  view.width = image.width;
  view.bytes = {reinterpret_cast<const char*>(image.pixels),
                static_cast<size_t>(image.channels * image.Plane())};
  return view;
}

DatumView ViewOf(const Image& image) {
  DatumView view = ViewOf(ImageView(image));
  if (image.floats.empty()) return view;
  view.bytes = {};
  view.floats = image.floats;
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

// False when the bytes are not a Datum. Unknown fields are skipped, the last of repeated scalars
// counts: protobuf's rules.
bool DatumParser::Decode(std::string_view value) {
  view_ = DatumView{};
  encoded_ = false;
  floats_.clear();
  CodedInputStream in(reinterpret_cast<const uint8_t*>(value.data()),
                      static_cast<int>(value.size()));
  while (const uint32_t tag = in.ReadTag()) {
    bool ok = true;
    switch (tag) {
      case Tag(1, kVarint):
        ok = ReadInt32(in, &view_.channels);
        break;
      case Tag(2, kVarint):
        ok = ReadInt32(in, &view_.height);
        break;
      case Tag(3, kVarint):
        ok = ReadInt32(in, &view_.width);
        break;
      case Tag(4, kLength):
        ok = ReadView(in, &view_.bytes);
        break;
      case Tag(5, kVarint):
        ok = view_.has_label = ReadInt32(in, &view_.label);
        break;
      case Tag(6, kFixed32):
        ok = ReadFloat(in, &floats_);
        break;
      case Tag(6, kLength):
        ok = ReadPackedFloats(in, &floats_);
        break;
      case Tag(7, kVarint):
        ok = ReadFlag(in, &encoded_);
        break;
      default:
        ok = WireFormatLite::SkipField(&in, tag);
    }
    if (!ok) return false;
  }
  view_.floats = floats_;
  return in.ConsumedEntireMessage();
}

DatumView DatumParser::DecodeEncoded(const std::string& path, std::string_view key,
                                     const CropChooser* choose) {
  const std::string what = Join("record ", QuoteKey(key));
  if (choose == nullptr) {
    DecodeImage(view_.bytes, colors_, {path}, what, &image_, depth_);
    return ViewOf(image_);
  }
  DecodedRegion held;
  DecodeRegion(view_.bytes, colors_, *choose, {path}, what, &image_, &held, depth_);
  return ViewOf(image_, held);
}

const DatumView& DatumParser::Parse(const std::string& path, std::string_view key,
                                    std::string_view value, const CropChooser* choose) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kData, {path}, Join("record ", QuoteKey(key), " ", what));
  };
  if (value.size() > INT_MAX || !Decode(value)) {
    fail(
        Join("is not a Datum: its ", value.size(),
             " bytes cannot be parsed; the database is damaged, or it is not a database of Caffe"));
  }
  if (view_.bytes.empty() && view_.floats.empty()) {
    fail("is empty: it has neither data nor float_data");
  }
  if (!view_.bytes.empty() && !view_.floats.empty()) {
    fail("has both data and float_data; it must have only one of them");
  }
  if (encoded_ && view_.floats.empty()) {
    DatumView image = DecodeEncoded(path, key, choose);
    image.label = view_.label;
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
