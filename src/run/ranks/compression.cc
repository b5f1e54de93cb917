#include "trainer/run/ranks/compression.h"

namespace trainer {

std::optional<CompressionType> RequestedCompression(const RankOptions& options) {
  for (const CompressionType type :
       {CompressionType::kF32, CompressionType::kF16, CompressionType::kBF16}) {
    if (options.exchange_type == NameOf(type)) return type;
  }
  return std::nullopt;
}

CompressionType ApplyCompression(const RankOptions& options, SolverSpec* spec) {
  if (const std::optional<CompressionType> type = RequestedCompression(options)) {
    spec->proto.set_exchange_type(*type == CompressionType::kF16    ? caffe::FLOAT16
                                  : *type == CompressionType::kBF16 ? caffe::BFLOAT16
                                                                    : caffe::FLOAT);
  }
  const caffe::Type type = spec->proto.exchange_type();
  return type == caffe::FLOAT16    ? CompressionType::kF16
         : type == caffe::BFLOAT16 ? CompressionType::kBF16
                                   : CompressionType::kF32;
}

}  // namespace trainer
