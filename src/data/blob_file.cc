#include "trainer/data/blob_file.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

constexpr uintmax_t kMaxBytes = uintmax_t{1} << 30;

std::string ReadBytes(const std::string& path) {
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (std::filesystem::is_directory(status)) {
    throw Error(ErrorCode::kData, {path}, "this is a folder, not a .binaryproto file");
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    const int error = errno;
    throw Error(error == EACCES ? ErrorCode::kNoPermission : ErrorCode::kNoInput, {path},
                Join("cannot open the file: ", std::strerror(error)));
  }
  const uintmax_t bytes = std::filesystem::file_size(path, failure);
  if (failure || bytes > kMaxBytes) {
    throw Error(ErrorCode::kData, {path}, "not a plain file of at most 1 GiB");
  }
  std::string content(bytes, '\0');
  if (!in.read(content.data(), static_cast<std::streamsize>(bytes))) {
    throw Error(ErrorCode::kIo, {path}, "cannot read the file to its end");
  }
  return content;
}

std::vector<int64_t> ShapeOf(const caffe::BlobProto& blob) {
  if (blob.has_num() || blob.has_channels() || blob.has_height() || blob.has_width()) {
    return {blob.num(), blob.channels(), blob.height(), blob.width()};
  }
  return {blob.shape().dim().begin(), blob.shape().dim().end()};
}

}  // namespace

BlobValues ReadBlobFile(const std::string& path) {
  caffe::BlobProto blob;
  const std::string content = ReadBytes(path);
  if (content.empty() || !blob.ParseFromString(content)) {
    throw Error(ErrorCode::kData, {path},
                Join("not a BlobProto: its ", content.size(), " bytes do not parse"));
  }
  BlobValues result;
  result.shape = ShapeOf(blob);
  if (blob.double_data_size() > 0) {
    result.values.assign(blob.double_data().begin(), blob.double_data().end());
  } else {
    result.values.assign(blob.data().begin(), blob.data().end());
  }
  const auto have = static_cast<int64_t>(result.values.size());
  int64_t want = 1;
  std::vector<std::string> dims;
  for (const int64_t dim : result.shape) {
    dims.push_back(Join(dim));
    // Stops growing past what the file could hold, so that it cannot overflow.
    want = dim < 0 ? -1 : want > have ? want : want * std::min<int64_t>(dim, INT32_MAX);
    if (want < 0) break;
  }
  if (want != have) {
    throw Error(ErrorCode::kData, {path},
                Join("its shape is ", dims.empty() ? "()" : JoinList(dims, "x"), ", but it holds ",
                     have, " numbers"));
  }
  for (size_t i = 0; i < result.values.size(); ++i) {
    if (!std::isfinite(result.values[i])) {
      throw Error(ErrorCode::kData, {path}, Join("number ", i, " is not finite"));
    }
  }
  return result;
}

}  // namespace trainer
