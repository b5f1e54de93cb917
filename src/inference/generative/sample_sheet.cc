#include "trainer/inference/generative/sample_sheet.h"

#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"
#include "trainer/image/image_grid.h"

namespace trainer {

std::vector<int64_t> SampleImageDims(const std::vector<int64_t>& dims, const std::string& shape) {
  const int64_t width =
      std::accumulate(dims.begin() + 1, dims.end(), int64_t{1}, std::multiplies<>());
  if (!shape.empty()) {
    std::vector<int64_t> given = {dims[0]};
    for (const std::string& length : SplitList(shape)) {
      given.push_back(std::strtol(length.c_str(), nullptr, 10));
    }
    const bool fits = given.size() == 4 && given[1] > 0 && given[2] > 0 && given[3] > 0 &&
                      given[1] * given[2] * given[3] == width;
    if (fits) return given;
    throw Error(ErrorCode::kUsage,
                Join("--shape=", EscapeControl(shape), " does not fit a sample: C*H*W must be ",
                     width, " numbers"));
  }
  if (dims.size() == 4) return dims;
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(width))));
  if (side * side == width) return {dims[0], 1, side, side};
  throw Error(ErrorCode::kUsage, Join("a sample has ", width,
                                      " numbers, which is not a square image; give --shape=C,H,W"));
}

void WriteSampleSheet(const std::string& path, const SampleSet& samples, const std::string& shape) {
  const std::vector<int64_t> dims = SampleImageDims(samples.dims, shape);
  WriteWhole(path, EncodeImage(MakeImageGrid(samples.values, dims), "png"));
}

void WriteSamples(const std::string& path, const SampleSet& samples, bool replace) {
  Hdf5Appender file(path, "", replace ? Hdf5Creation::kReplace : Hdf5Creation::kNew);
  file.Append("samples", samples.dims, samples.values);
  file.Close();
}

}  // namespace trainer
