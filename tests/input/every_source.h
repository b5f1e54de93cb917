#pragma once
// Provides all sources of records, with numbered records, for tests of their common behaviour.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/tar_text.h"
#include "storage/test_data.h"
#include "trainer/base/text/text.h"
#include "trainer/hdf5/appender.h"
#include "trainer/input/batch_queue.h"
#include "trainer/input/source.h"

namespace trainer {

// Creates queues of `records` numbered records, at most 255; output 1 holds the numbers.
class EverySource {
 public:
  static std::vector<std::string> Kinds() {
    return {"LMDB", "LMDB in random order", "LEVELDB", "LEVELDB in random order",
            "TAR",  "TAR in random order",  "images",  "images in random order",
            "rows", "rows in random order"};
  }

  // Returns the kinds whose classes are balanced. Each record is its own class by default.
  static std::vector<std::string> BalancedKinds() {
    return {"LMDB balanced", "LEVELDB balanced", "TAR balanced", "images balanced"};
  }

  // Images have 3 channels, and for MakeWindows at least 4 rows and 5 columns. `label_of`, if
  // given, replaces the numbers in output 1.
  explicit EverySource(
      int records, int height = 4, int width = 5,
      const std::function<int(int)>& label_of = [](int i) { return i; })
      : height_(height), width_(width) {
    for (const char* backend : {"LMDB", "LEVELDB"}) {
      trainer::Records all;
      for (int i = 0; i < records; ++i) {
        all.emplace_back(Key8(i),
                         MakeDatum(3, height, width, Pixels(i), label_of(i)).SerializeAsString());
      }
      WriteDb(backend, folder_ / backend, all);
    }
    std::string list, tar, memory, labels;
    for (int i = 0; i < records; ++i) {
      const std::string name = Join("p", i, ".ppm");
      const std::string picture = Join("P6 ", width, " ", height, " 255\n") + Pixels(i);
      memory += Pixels(i);
      labels += Join(i, "\n");
      WriteBytes(folder_ / name, picture);
      list += Join(name, " ", label_of(i), "\n");
      tar += TarEntryText(name, picture) + TarEntryText(Join("p", i, ".cls"), Join(label_of(i)));
      if (i == records / 2) WriteBytes(folder_ / "tar-0.tar", std::exchange(tar, "") + TarEnd());
    }
    WriteBytes(folder_ / "tar-1.tar", tar + TarEnd());
    WriteBytes(folder_ / "images", list);
    WriteBytes(folder_ / "memory", memory);
    WriteBytes(folder_ / "labels", labels);
    WriteRows(records);
  }

  // Opens a source for training on floats. Rows ignore `transform`.
  std::unique_ptr<BatchQueue> Make(const std::string& kind, int batch_size, Rank rank = {},
                                   int threads = 1, const std::string& transform = "",
                                   int parts = 1) const {
    InputEnv env{caffe::TRAIN, {1, 2}, rank, threads};
    env.virtual_ranks = parts;
    return Make(kind, batch_size, transform, env);
  }

  // Opens a source for a run of any phase and type of batches. `kind` may also be "memory" or
  // "windows".
  std::unique_ptr<BatchQueue> Make(const std::string& kind, int batch_size,
                                   const std::string& transform, const InputEnv& env) const {
    std::string tops = "name: 'd' top: 'x' top: 'y' ";
    const bool is_database = kind.starts_with('L') || kind.starts_with('T');
    if (!is_database && !data_fields.empty()) tops += "data_param { " + data_fields + " } ";
    const std::string random = kind.find("random") == std::string::npos ? "" : " shuffle: true";
    const std::string balanced = kind.ends_with("balanced") ? " sampling: BALANCED" : "";
    const std::string size = Join(" batch_size: ", batch_size, random, balanced, " } ");
    const std::string tail = size + "transform_param { " + transform + " }";
    if (kind == "windows") return MakeWindowsOf(size, transform, env);
    if (kind == "memory") {
      const std::string image = Join("channels: 3 height: ", height_, " width: ", width_);
      const LayerSpec& layer =
          KeptLayer(tops + "type: 'MemoryData' memory_data_param { " + image + " source: '" +
                    (folder_ / "memory") + "' labels: '" + (folder_ / "labels") + "'" + tail);
      return OpenMemory(layer, env);
    }
    if (kind.starts_with("rows")) {
      const LayerSpec& layer = KeptLayer(tops + "type: 'HDF5Data' hdf5_data_param { source: '" +
                                         (folder_ / "rows") + "'" + size);
      return OpenHdf5Rows(layer, env);
    }
    if (kind.starts_with("images")) {
      const LayerSpec& layer =
          KeptLayer(tops + "type: 'ImageData' image_data_param { source: '" + (folder_ / "images") +
                    "' root_folder: '" + (folder_ / "") + "'" + tail);
      return OpenImageList(layer, env);
    }
    const std::string backend = kind.substr(0, kind.find(' '));
    const std::string source = backend == "TAR" ? "tar-{0..1}.tar" : backend;
    const std::string window = random.empty() ? "" : " shuffle_window: 5";
    const LayerSpec& layer =
        KeptLayer(tops + "type: 'Data' data_param { backend: " + backend + " source: '" +
                  (folder_ / source) + "' " + data_fields + window + tail);
    return OpenDatabase(layer, env);
  }

  // fields of data_param for all kinds
  std::string data_fields;

  // Opens a source of windows, whose labels do not identify them.
  std::unique_ptr<BatchQueue> MakeWindows(int batch_size, Rank rank = {}, int threads = 1,
                                          int parts = 1) {
    InputEnv env{caffe::TRAIN, {1, 2}, rank, threads};
    env.virtual_ranks = parts;
    return Make("windows", batch_size, "crop_size: 3 mirror: true", env);
  }

  // Returns the folder of the sets, with a trailing slash.
  std::string folder() const { return folder_ / ""; }

  // Returns the record numbers of the next batches.
  static std::vector<int> Records(BatchQueue& source, int batches) {
    std::vector<int> numbers;
    for (int i = 0; i < batches; ++i) {
      for (const float label : source.Next().output(1)) numbers.push_back(static_cast<int>(label));
    }
    return numbers;
  }

 private:
  std::unique_ptr<BatchQueue> MakeWindowsOf(const std::string& size, const std::string& transform,
                                            const InputEnv& env) const {
    WriteBytes(folder_ / "windows", "# 0\n" + (folder_ / "p1.ppm") +
                                        "\n3\n4\n5\n3\n1 0.9 0 0 2 2\n2 0.8 1 1 4 3\n"
                                        "0 0.1 2 0 4 1\n");
    const std::string fields = data_fields.empty() ? "" : "data_param { " + data_fields + " } ";
    const LayerSpec& layer =
        KeptLayer("name: 'd' type: 'WindowData' top: 'x' top: 'y' " + fields +
                  "window_data_param { source: '" + (folder_ / "windows") + "' fg_fraction: 0.5" +
                  size + "transform_param { " + transform + " }");
    return OpenWindowList(layer, env);
  }

  std::string Pixels(int i) const {
    std::string pixels;
    for (int p = 0; p < 3 * height_ * width_; ++p) pixels += static_cast<char>(i * 31 + p * 7);
    return pixels;
  }

  // Writes two files, with images in `x` and numbers in `y`.
  void WriteRows(int records) const {
    std::string list;
    for (const int first : {0, records / 3}) {
      const int end = first == 0 ? records / 3 : records;
      const std::string path = folder_ / Join("rows", first, ".h5");
      Hdf5Appender file(path);
      std::vector<float> images, numbers;
      for (int i = first; i < end; ++i) {
        for (const char pixel : Pixels(i)) images.push_back(static_cast<float>(pixel));
        numbers.push_back(static_cast<float>(i));
      }
      file.Append("x", std::vector<int64_t>{end - first, 3, height_, width_}, images);
      file.Append("y", std::vector<int64_t>{end - first}, numbers);
      file.Flush();
      list += path + "\n";
    }
    WriteBytes(folder_ / "rows", list);
  }

  int height_, width_;
  TempFolder folder_;
};

}  // namespace trainer
