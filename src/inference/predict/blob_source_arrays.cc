#include <algorithm>

#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/predict/blob_source.h"
#include "trainer/storage/array_file.h"

namespace trainer {
namespace {

// See MakeArraySource.
class ArraySource final : public BlobSource {
 public:
  ArraySource(const std::string& path, const Net& net) : path_(path), file_(OpenArrayFile(path)) {
    for (const InputBlob& input : InputBlobs(net)) {
      arrays_.push_back(Open(input));
      const int64_t length = input.value.shape[0], rows = arrays_.back()->dims()[0];
      const int64_t passes = (rows + length - 1) / length;
      if (arrays_.size() == 1) passes_ = passes;
      if (passes != passes_ || passes == 0) {
        Fail(input, Join("has ", rows, " rows, enough for ", passes, " passes of ", length,
                         passes == 0 ? "" : Join("; the first input has enough for ", passes_)));
      }
    }
  }

  // Reads the next rows of each dataset. The last batch may be padded with zeros.
  int64_t Fill(const Net& net) override {
    if (pass_ == passes_) return 0;
    const std::vector<InputBlob> inputs = InputBlobs(net);
    int64_t real = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Shape& shape = inputs[i].value.shape;
      const int64_t first = pass_ * shape[0];
      const int64_t rows = std::min(shape[0], arrays_[i]->dims()[0] - first);
      host_.assign(static_cast<size_t>(shape.Count()), 0.0f);
      const auto wanted = static_cast<size_t>(rows * shape.Count(1));
      arrays_[i]->ReadRows(first, rows, std::span(host_).first(wanted));
      net.WriteNchw(host_, inputs[i].value);
      if (i == 0) real = rows;
    }
    ++pass_;
    return real;
  }

 private:
  [[noreturn]] void Fail(const InputBlob& input, const std::string& message) const {
    throw Error(ErrorCode::kData, {path_},
                Join("dataset '", EscapeControl(input.name), "' ", message));
  }

  // Opens the dataset of an input. Throws kData if its shape does not fit.
  std::unique_ptr<StoredArray> Open(const InputBlob& input) const {
    std::unique_ptr<StoredArray> array = file_->Array(input.name);
    const Shape& shape = input.value.shape;
    const std::vector<int64_t>& dims = array->dims();
    const bool fits = static_cast<int>(dims.size()) == shape.Rank() &&
                      std::equal(dims.begin() + 1, dims.end(), shape.dims().begin() + 1);
    if (!fits) {
      std::vector<std::string> given, wanted = {"rows"};
      for (const int64_t dim : dims) given.push_back(Join(dim));
      for (const int64_t dim : shape.dims().subspan(1)) wanted.push_back(Join(dim));
      Fail(input, Join("has the shape (", JoinList(given), "), but the input needs (",
                       JoinList(wanted), ")"));
    }
    return array;
  }

  std::string path_;
  std::unique_ptr<ArrayFile> file_;
  std::vector<std::unique_ptr<StoredArray>> arrays_;  // one per input
  int64_t passes_ = 0, pass_ = 0;
  std::vector<float> host_;
};

}  // namespace

std::unique_ptr<BlobSource> MakeArraySource(const std::string& path, const Net& net) {
  return std::make_unique<ArraySource>(path, net);
}

}  // namespace trainer
