#include "input/source_probe.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "trainer/base/file/file.h"
#include "trainer/base/file/file_system.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/input/counters.h"
#include "trainer/input/image_list.h"
#include "trainer/input/source.h"
#include "trainer/input/window_list.h"

namespace trainer {
namespace {

// The image files that a list names, in its order.
std::vector<std::string> ListedFiles(const std::vector<ListedImage>& images,
                                     const std::string& root) {
  std::vector<std::string> files;
  for (const ListedImage& image : images) files.push_back(root + image.path);
  return files;
}

std::optional<InputSource> FindSource(const LayerSpec& layer) {
  const caffe::LayerParameter& proto = layer.proto();
  InputSource source;
  source.layer = layer.name();
  const auto take = [&](const std::string& kind, const std::string& path, uint32_t batch) {
    source.profile.kind = kind;
    source.profile.path = path.empty() ? "" : ResolvePath(path, layer.Where().file);
    source.batch = batch;
  };
  if (layer.type() == "Data") {
    const caffe::DataParameter& param = proto.data_param();
    take(caffe::DataParameter::DB_Name(param.backend()), "", param.batch_size());
    if (!param.source().empty()) source.profile.path = DatabasePath(layer);
  } else if (layer.type() == "HDF5Data") {
    take("HDF5", proto.hdf5_data_param().source(), proto.hdf5_data_param().batch_size());
  } else if (layer.type() == "ImageData") {
    take("files", proto.image_data_param().source(), proto.image_data_param().batch_size());
  } else if (layer.type() == "WindowData") {
    take("files", proto.window_data_param().source(), proto.window_data_param().batch_size());
  }
  const std::string path = source.profile.path;
  if (path.empty()) return std::nullopt;
  source.files = [path] { return FilesOfSet(path); };
  source.rates = [path](const ReadBenchmarkOptions& options) {
    return BenchmarkReads(path, options);
  };
  if (layer.type() == "HDF5Data") {
    source.rates = [layer](const ReadBenchmarkOptions& options) {
      return BenchmarkRows(layer, options);
    };
  } else if (source.profile.kind == "files") {
    const bool windows = layer.type() == "WindowData";
    source.files = [path, windows, proto] {
      return windows
                 ? ListedFiles(ReadWindowList(path).images, proto.window_data_param().root_folder())
                 : ListedFiles(ReadImageList(path), proto.image_data_param().root_folder());
    };
    source.rates = [files = source.files](const ReadBenchmarkOptions& options) {
      return BenchmarkFiles(files(), options);
    };
  }
  return source;
}

}  // namespace

std::vector<InputSource> FindSources(const SolverSpec& spec) {
  std::vector<InputSource> sources;
  for (const LayerSpec& layer : FilterLayers(*spec.train.net, spec.train.state)) {
    if (std::optional<InputSource> source = FindSource(layer)) {
      source->batch *= spec.proto.iter_size();
      sources.push_back(std::move(*source));
    }
  }
  return sources;
}

void ProbeSource(double seconds, InputSource* source) {
  constexpr size_t kSampledFiles = 1000;
  InputProfile& profile = source->profile;
  const std::vector<std::string> files = source->files();
  profile.where = FileSystemAt(files.empty() ? profile.path : files[0]);
  std::string largest;
  const size_t step = files.size() / kSampledFiles + 1;
  for (size_t i = 0; i < files.size(); i += step) {
    const uint64_t bytes = FileSize(files[i]);
    profile.bytes += bytes * std::min(step, files.size() - i);
    if (bytes < profile.largest_file) continue;
    profile.largest_file = bytes;
    largest = files[i];
  }
  if (profile.where.name == "Lustre") profile.stripes = LustreStripes(largest);
  const std::vector<ReadRate> rates = source->rates({seconds, 1});
  profile.cold = rates[0].RecordsPerSecond();
  profile.warm = rates[1].RecordsPerSecond();
  profile.decoded = rates.back().RecordsPerSecond();
}

}  // namespace trainer
