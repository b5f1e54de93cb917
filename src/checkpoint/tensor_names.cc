#include "tensor_names.h"

#include <algorithm>
#include <climits>
#include <map>
#include <sstream>

#include "trainer/base/error/error.h"
#include "trainer/base/file/text_file.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr int64_t kMostElements = INT_MAX;  // limit for a blob, because it is a protobuf list

// Splits "name[2,3]" into the name and the shape. Returns false if the brackets hold something
// else.
bool SplitShape(std::string* word, std::vector<int64_t>* dims) {
  if (!word->ends_with(']')) return true;
  const size_t open = word->rfind('[');
  if (open == std::string::npos || open == 0) return false;
  int64_t count = 1;
  for (const std::string& text :
       SplitList(std::string_view(*word).substr(open + 1, word->size() - open - 2))) {
    const int64_t dim = ParseNumber<int64_t>(text).value_or(0);
    if (dim < 1 || dim > kMostElements / count) return false;
    count *= dim;
    dims->push_back(dim);
  }
  word->resize(open);
  return !dims->empty();
}

int64_t CountOf(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

// Reads the lines of a table.
class TensorTableReader {
 public:
  explicit TensorTableReader(const std::string& path) : path_(path) {}

  std::vector<LayerTensors> Read() {
    constexpr uint64_t kMaxBytes = uint64_t{16} << 20;
    std::istringstream lines(ReadListFile(path_, kMaxBytes));
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      line.resize(std::min(line.find('#'), line.size()));
      line.erase(line.find_last_not_of(" \t\r") + 1);
      line.erase(0, std::min(line.find_first_not_of(" \t"), line.size()));
      if (!line.empty()) AddLine(line);
    }
    for (LayerTensors& layer : layers_) Finish(&layer);
    if (layers_.empty()) Fail("the table has no lines 'LAYER.BLOB TENSOR'");
    return std::move(layers_);
  }

 private:
  [[noreturn]] void Fail(const std::string& why) const {
    throw Error(ErrorCode::kData, {path_, line_}, why);
  }

  // Adds a line without its comment and outer blanks. Names of layers may contain blanks.
  void AddLine(const std::string& line) {
    const size_t blank = line.find_last_of(" \t");
    std::string blob = line.substr(0, line.find_last_not_of(" \t", blank) + 1);
    TensorName name;
    name.line = line_;
    if (blank != std::string::npos) name.tensor = line.substr(blank + 1);
    if (!SplitShape(&blob, &name.blob_dims) || !SplitShape(&name.tensor, &name.tensor_dims)) {
      Fail("a shape in brackets is not positive whole numbers, as in fc.0[1000,512,1,1]");
    }
    const auto found = ParseBlobName(blob);
    if (blank == std::string::npos || !found) {
      Fail(Join("'", EscapeControl(line),
                "' does not name a blob and its tensor, as in 'conv1.0 conv1.weight'"));
    }
    if (!name.blob_dims.empty() && !name.tensor_dims.empty() &&
        CountOf(name.blob_dims) != CountOf(name.tensor_dims)) {
      Fail("the shapes of the blob and of the tensor have different numbers of elements");
    }
    if (name.tensor.starts_with('=')) {
      const std::optional<float> number = ParseNumber<float>(name.tensor.substr(1));
      if (!number) Fail(Join("'", EscapeControl(name.tensor), "' is not a number, as in '=1'"));
      name.number = *number;
      name.tensor.clear();
    }
    name.blob = found->second;
    LayerOf(found->first).blobs.push_back(std::move(name));
  }

  LayerTensors& LayerOf(const std::string& layer) {
    const auto [found, is_new] = indices_.emplace(layer, layers_.size());
    if (is_new) layers_.push_back({layer, {}});
    return layers_[found->second];
  }

  void Finish(LayerTensors* layer) {
    std::ranges::stable_sort(layer->blobs, {}, &TensorName::blob);
    std::vector<int> indices;
    for (const TensorName& blob : layer->blobs) indices.push_back(blob.blob);
    RequireAllBlobs(layer->layer, indices, Join(path_, ":", layer->blobs.front().line));
  }

  const std::string& path_;
  int line_ = 0;
  std::vector<LayerTensors> layers_;
  std::map<std::string, size_t> indices_;  // indices in layers_
};

}  // namespace

std::vector<LayerTensors> ReadTensorNames(const std::string& path) {
  return TensorTableReader(path).Read();
}

std::optional<std::pair<std::string, int>> ParseBlobName(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return std::nullopt;
  const std::string digits = name.substr(dot + 1);
  const int index = ParseNumber<int>(digits).value_or(-1);
  if (index < 0 || Join(index) != digits) return std::nullopt;
  return std::pair(name.substr(0, dot), index);
}

void RequireAllBlobs(const std::string& layer, std::span<const int> indices,
                     const std::string& place) {
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] == static_cast<int>(i)) continue;
    const bool is_again = i > 0 && indices[i] == indices[i - 1];
    throw Error(ErrorCode::kData, {place},
                EscapeControl(is_again ? Join("'", layer, ".", indices[i], "' is there twice")
                                       : Join("'", layer, ".", indices[i], "' is there, but '",
                                              layer, ".", i, "' is not")));
  }
}

}  // namespace trainer
