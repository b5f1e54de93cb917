#pragma once
// Arrays of numbers as files hold them (BlobProto): weights, a rule's state, mean images.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "datum.pb.h"
#include "trainer/base/error/error.h"

namespace trainer {

// The numbers of one BlobProto, row-major, last axis fastest: (N, C, H, W) for four axes.
struct BlobData {
  std::vector<int64_t> dims;      // empty for a scalar
  bool legacy = false;            // dims came from num, channels, height, width
  std::span<const float> values;  // in the BlobProto, which must outlive this, or in `widened`
  std::unique_ptr<float[]> widened;
};

// Accepts every form that Caffe and NVIDIA Caffe write: shape or the four old fields (which win);
// float, double (which wins) or raw_data of type FLOAT, DOUBLE, FLOAT16 or BFLOAT16. Throws `code`
// with `place` for a negative or overflowing shape, more than 32 axes, a count that differs from
// the shape's, a raw_data of another type, and a number that is not finite; the message starts with
// `what`, see BlobName. Nothing is allocated from the shape alone.
BlobData ReadBlob(const caffe::BlobProto& proto, const SourceRef& place, const std::string& what,
                  ErrorCode code = ErrorCode::kData);

// Replaces the shape and the values of `to`; its other fields, such as the four old sizes, stay.
// `values` must be as many as `dims` say.
void WriteBlob(std::span<const int64_t> dims, std::span<const float> values, caffe::BlobProto* to);

// Returns whether the blob fits an array of shape `dims`: its shape is equal, or equal without the
// leading axes with which the four old fields pad a shorter shape.
bool FitsShape(const BlobData& blob, std::span<const int64_t> dims);

// Returns "layer 'conv1', blob 0", for messages.
std::string BlobName(const std::string& layer, int index);

// Returns "20 1 5 5 (500)", as Caffe prints a shape.
std::string ShapeText(std::span<const int64_t> dims);

}  // namespace trainer
