#include "trainer/run/ranks/compression.h"

namespace trainer {

std::optional<WireType> RequestedCompression(const RankOptions& options) {
  for (const WireType type : {WireType::kF32, WireType::kF16, WireType::kBF16}) {
    if (options.exchange_type == NameOf(type)) return type;
  }
  return std::nullopt;
}

WireType ApplyCompression(const RankOptions& options, SolverSpec* spec) {
  if (const std::optional<WireType> type = RequestedCompression(options)) {
    spec->proto.set_exchange_type(*type == WireType::kF16    ? caffe::FLOAT16
                                  : *type == WireType::kBF16 ? caffe::BFLOAT16
                                                             : caffe::FLOAT);
  }
  const caffe::Type type = spec->proto.exchange_type();
  return type == caffe::FLOAT16    ? WireType::kF16
         : type == caffe::BFLOAT16 ? WireType::kBF16
                                   : WireType::kF32;
}

}  // namespace trainer
