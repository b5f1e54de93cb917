#include "trainer/onnx/onnx_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <climits>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// Throws kData for a file that is not a model.
[[noreturn]] void RefuseOnnxFile(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kData, {path}, why);
}

}  // namespace

onnx::ModelProto ReadOnnx(const std::string& path) {
  for (const char* end : {".pth", ".pt", ".safetensors"}) {
    if (!path.ends_with(end)) continue;
    RefuseOnnxFile(path,
                   "this is a file of weights, which does not say what the layers compute; in "
                   "Python, write the model as ONNX: torch.onnx.export(model.eval(), "
                   "torch.randn(1, 3, 224, 224), 'model.onnx', dynamo=False)");
  }
  const uint64_t size = FileSize(path);
  if (size == 0) RefuseOnnxFile(path, "the file is empty, so it is not an ONNX model");
  if (size > INT_MAX) {
    RefuseOnnxFile(path, Join("the file has ", size,
                              " bytes; a protobuf file can have at most 2 GiB - 1: save the model "
                              "with its weights as external data, e.g. by "
                              "onnx.save(model, path, save_as_external_data=True)"));
  }
  const FileHandle file = OpenForReading(path);
  google::protobuf::io::FileInputStream stream(file.get());
  google::protobuf::io::CodedInputStream in(&stream);
  in.SetTotalBytesLimit(INT_MAX);
  in.SetRecursionLimit(64);
  onnx::ModelProto model;
  const bool parsed = model.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
  if (stream.GetErrno() != 0) {
    ThrowFileError(FileUse::kInput, "read", AbsolutePath(path), stream.GetErrno());
  }
  if (!parsed) {
    RefuseOnnxFile(path,
                   "the file cannot be parsed as an ONNX model: it is another kind of file, "
                   "truncated or damaged");
  }
  if (model.graph().node_size() == 0) {
    RefuseOnnxFile(path, "the file has no graph with nodes, so it is not an ONNX model");
  }
  return model;
}

}  // namespace trainer
