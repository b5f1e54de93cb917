#pragma once
// What the tests of nvJPEG on an emulated GPU share.

#include <cmath>
#include <cstdlib>
#include <deque>

#include "gpu_testing.h"
#include "trainer/image/jpeg_unit.h"

namespace trainer {

inline std::string Jpeg(int height, int width, int channels, int seed) {
  Image image{channels, height, width, {}};
  for (int c = 0; c < channels; ++c) {
    for (int i = 0; i < height * width; ++i) {
      const double wave = std::sin(0.2 * (i % width) + c + seed) * std::cos(0.1 * i / width - c);
      image.pixels.push_back(static_cast<uint8_t>(128 + 100 * wave));
    }
  }
  return EncodeImage(image, "jpg");
}

// Gives a JPEG file a Huffman table that cannot be.
inline void SpoilTable(std::string* file) { (*file)[file->find("\xff\xc4") + 5] = '\x7f'; }

class NvjpegTest : public EmulatedGpu {
 protected:
  static GpuOptions Asked() {
    GpuOptions options;
    options.decode_jpegs = true;
    return options;
  }
  static void OnMachine(const emulated_gpu::NvjpegOptions& nvjpeg) {
    emulated_gpu::Options options;
    options.nvjpeg = nvjpeg;
    emulated_gpu::Reset(options);
  }
  static const DecodesJpegs& UnitsOf(const Device& device) {
    return dynamic_cast<const DecodesJpegs&>(device);
  }
  // Of files that stay as long as the test.
  std::vector<JpegTask> TasksOf(const std::vector<std::string>& files,
                                Colors colors = Colors::kColor) {
    std::vector<JpegTask> tasks;
    for (const std::string& file : files) {
      tasks.push_back({files_.emplace_back(file), FormOfPlainJpeg(file, colors).value(), {}});
    }
    return tasks;
  }
  // Within two levels of what the host decodes.
  static void ExpectPicture(const JpegTask& task, Colors colors = Colors::kColor) {
    ASSERT_NE(task.pixels, nullptr);
    Image host;
    DecodeImage(task.bytes, colors, {"f"}, "it", &host);
    ASSERT_EQ(task.form.Bytes(), host.pixels.size());
    int most = 0;
    for (size_t i = 0; i < host.pixels.size(); ++i) {
      most = std::max(most, std::abs(int{task.pixels[i]} - int{host.pixels[i]}));
    }
    EXPECT_LE(most, 2);
  }

 private:
  std::deque<std::string> files_;
};

}  // namespace trainer
