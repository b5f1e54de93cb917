#include "trainer/config/blob.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "trainer/base/random/half.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kMaxAxes = 32;

// Throws errors about one blob; it holds the data that their messages need.
struct Complaint {
  const SourceRef& place;
  const std::string& what;
  ErrorCode code;

  // Throws "place: what: message".
  template <class... Args>
  [[noreturn]] void Throw(const Args&... args) const {
    throw Error(code, place, Join(what, ": ", args...));
  }
};

// Returns the float whose upper 16 bits a BFLOAT16 holds.
float FromBrain(uint16_t upper) { return std::bit_cast<float>(uint32_t{upper} << 16); }

// Fills blob.values with convert(element) for the `count` elements of type T at `from`, which need
// not be aligned.
template <class T, class Convert>
void Widen(const void* from, size_t count, const Convert& convert, BlobData* blob) {
  blob->widened = std::make_unique_for_overwrite<float[]>(count);
  const char* at = static_cast<const char*>(from);
  for (size_t i = 0; i < count; ++i, at += sizeof(T)) {
    T element;
    std::memcpy(&element, at, sizeof(T));
    blob->widened[i] = convert(element);
  }
  blob->values = {blob->widened.get(), count};
}

// Fills blob->values from raw_data, whose elements have raw_data_type and this machine's byte
// order. Throws for other types and for a part of an element at the end.
void ReadRaw(const caffe::BlobProto& proto, const Complaint& complaint, BlobData* blob) {
  const std::string& raw = proto.raw_data();
  const auto widen = [&]<class T>(T, const auto& convert) {
    if (raw.size() % sizeof(T) != 0) {
      complaint.Throw("raw_data has ", raw.size(), " bytes, which is not a multiple of ",
                      sizeof(T));
    }
    Widen<T>(raw.data(), raw.size() / sizeof(T), convert, blob);
  };
  switch (proto.raw_data_type()) {
    case caffe::FLOAT:
      return widen(float(), [](float x) { return x; });
    case caffe::DOUBLE:
      return widen(double(), [](double x) { return static_cast<float>(x); });
    case caffe::FLOAT16:
      return widen(uint16_t(), FromHalf);
    case caffe::BFLOAT16:
      return widen(uint16_t(), FromBrain);
    default:
      complaint.Throw("raw_data_type is ", caffe::Type_Name(proto.raw_data_type()),
                      "; only FLOAT, DOUBLE, FLOAT16 and BFLOAT16 can be read");
  }
}

// Fills blob->values: from double_data if there is any, else from data, else from raw_data.
void ReadValues(const caffe::BlobProto& proto, const Complaint& complaint, BlobData* blob) {
  if (proto.double_data_size() > 0) {
    Widen<double>(
        proto.double_data().data(), static_cast<size_t>(proto.double_data_size()),
        [](double x) { return static_cast<float>(x); }, blob);
  } else if (proto.data_size() == 0 && !proto.raw_data().empty()) {
    ReadRaw(proto, complaint, blob);
  } else {
    blob->values = {proto.data().data(), static_cast<size_t>(proto.data_size())};
  }
}

// Fills blob->dims from the four old fields if any of them is set, else from shape.
void ReadDims(const caffe::BlobProto& proto, BlobData* blob) {
  blob->legacy = proto.has_num() || proto.has_channels() || proto.has_height() || proto.has_width();
  if (blob->legacy) {
    blob->dims = {proto.num(), proto.channels(), proto.height(), proto.width()};
  } else {
    blob->dims.assign(proto.shape().dim().begin(), proto.shape().dim().end());
  }
}

// Throws if the shape has more than 32 axes or a negative length, or if the number of values
// differs from it.
void CheckCount(const BlobData& blob, const Complaint& complaint) {
  if (blob.dims.size() > kMaxAxes) {
    complaint.Throw("it has ", blob.dims.size(), " axes; at most ", kMaxAxes, " are allowed");
  }
  int64_t count = 1;
  bool overflow = false;
  for (const int64_t dim : blob.dims) {
    if (dim < 0) complaint.Throw("its shape has the negative length ", dim);
    overflow = __builtin_mul_overflow(count, dim, &count) || overflow;
  }
  if (overflow || static_cast<uint64_t>(count) != blob.values.size()) {
    std::vector<std::string> dims;
    for (const int64_t dim : blob.dims) dims.push_back(Join(dim));
    complaint.Throw("it has ", blob.values.size(), " numbers, but its shape is ",
                    dims.empty() ? "that of a single number" : JoinList(dims, " x "),
                    "; the file is damaged");
  }
}

// Throws with the index of the first NaN or infinity.
void CheckFinite(std::span<const float> values, const Complaint& complaint) {
  constexpr size_t kPiece = 4096;
  for (size_t start = 0; start < values.size(); start += kPiece) {
    const auto piece = values.subspan(start, std::min(kPiece, values.size() - start));
    bool finite = true;  // without an early exit the compiler vectorises the loop
    for (const float x : piece) finite &= std::abs(x) <= std::numeric_limits<float>::max();
    if (finite) continue;
    const auto bad = std::ranges::find_if(piece, [](float x) { return !std::isfinite(x); });
    complaint.Throw("number ", start + static_cast<size_t>(bad - piece.begin()), " is ",
                    std::isnan(*bad) ? "NaN" : "infinite",
                    "; these values cannot be used: use an earlier snapshot");
  }
}

}  // namespace

BlobData ReadBlob(const caffe::BlobProto& proto, const SourceRef& place, const std::string& what,
                  ErrorCode code) {
  const Complaint complaint{place, what, code};
  BlobData blob;
  ReadDims(proto, &blob);
  ReadValues(proto, complaint, &blob);
  CheckCount(blob, complaint);
  CheckFinite(blob.values, complaint);
  return blob;
}

void WriteBlob(std::span<const int64_t> dims, std::span<const float> values, caffe::BlobProto* to) {
  auto* shape = to->mutable_shape()->mutable_dim();
  shape->Clear();
  shape->Add(dims.begin(), dims.end());
  auto* data = to->mutable_data();
  data->Clear();
  data->Reserve(static_cast<int>(values.size()));
  data->Add(values.begin(), values.end());
}

bool FitsShape(const BlobData& blob, std::span<const int64_t> dims) {
  if (std::ranges::equal(blob.dims, dims)) return true;
  if (!blob.legacy || dims.size() > blob.dims.size()) return false;
  const std::span<const int64_t> have(blob.dims);
  const auto padding = have.first(have.size() - dims.size());
  return std::ranges::all_of(padding, [](int64_t dim) { return dim == 1; }) &&
         std::ranges::equal(have.last(dims.size()), dims);
}

std::string BlobName(const std::string& layer, int index) {
  return Join("layer '", layer, "', blob ", index);
}

std::string ShapeText(std::span<const int64_t> dims) {
  std::string text;
  int64_t count = 1;
  for (const int64_t dim : dims) {
    text += Join(dim, " ");
    count *= dim;
  }
  return text + Join("(", count, ")");
}

}  // namespace trainer
