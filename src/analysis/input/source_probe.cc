#include "input/source_probe.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "trainer/base/file/file.h"
#include "trainer/base/file/file_system.h"
#include "trainer/input/input_files.h"

namespace trainer {
namespace {

// Returns the source of a layer, with functions that list and measure its files when they are
// called; no value for a layer that reads no files.
std::optional<InputSource> FindSource(const LayerSpec& layer) {
  const std::optional<InputFiles> files = InputFilesOf(layer);
  if (!files || files->path.empty()) return std::nullopt;
  InputSource source;
  source.layer = layer.name();
  source.profile.kind = files->format;
  source.profile.path = files->path;
  source.batch = files->batch_size;
  source.files = [files] { return files->Files(); };
  source.rates = [files, layer](const ReadBenchmarkOptions& options) {
    if (files->format == "files") return BenchmarkFiles(files->Files(), options);
    if (files->format == "HDF5") return BenchmarkRows(layer, options);
    return BenchmarkReads(files->path, options);
  };
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
