#pragma once
// Lets a C++ program predict with a trained net. This header is the whole interface of
// libtrainer.so. It needs only C++17 and the standard library. See "From C++" in docs/models.md.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace trainer {

// Predictor throws this error. what() says which file is wrong, why, and what to try. The text has
// one line, or several if it quotes a line of the net's file.
class PredictorError : public std::runtime_error {
 public:
  PredictorError(int code, const std::string& message) : std::runtime_error(message), code_(code) {}

  // Returns the exit code that the program `trainer` would return, e.g. 66 for a missing file; see
  // docs/exit-codes.md.
  int code() const noexcept { return code_; }

 private:
  int code_;
};

// Says what a Predictor loads. Set either `model` or `run`.
struct PredictorOptions {
  // A net file that `trainer deploy` wrote, or a model in one file, which includes its weights.
  std::string model = {};
  std::vector<std::string> weights = {};  // files with the weights of `model`, loaded in order
  std::string run = {};     // folder of `trainer train --run=DIR`; gives net and best weights
  std::string output = {};  // blob to return; "": the net's only output
  int batch = 1;            // number of items that the net computes at once
  int gpu = -1;             // index of a GPU; -1: the CPU
};

// Refers to an image in memory that the caller owns. Rows run from top to bottom, and the channels
// of a pixel follow one another.
struct PredictorImage {
  enum class Order { kRgb, kBgr };  // for three channels

  const std::uint8_t* pixels = nullptr;
  int height = 0, width = 0;
  int channels = 3;  // 3, or 1 for gray
  Order order = Order::kRgb;
  std::size_t row_bytes = 0;  // distance between rows; 0: width * channels
};

// Holds a trained net with its weights. All functions throw PredictorError and nothing else; they
// print nothing and do not end the process. If the process has initialised glog, PredictFile logs
// the first image of 16 bits per channel and the first image with several pages. Only one thread at
// a time may use an object, but several threads may use several objects.
class Predictor {
 public:
  // Loads the net. Throws if a layer's weights are missing. During this call the process logs
  // nothing through glog.
  explicit Predictor(const PredictorOptions& options);
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;

  // Return the shape of one item, e.g. {3, 227, 227} for channels, height, width. A detector
  // returns one row per detection, at most the number of rows in output_shape(), and needs a batch
  // of 1.
  const std::vector<std::int64_t>& input_shape() const;
  const std::vector<std::int64_t>& output_shape() const;
  // Returns the names of the classes, or nothing if the run or the model file has none.
  const std::vector<std::string>& labels() const;

  // Prepares an image as the comment in the net's file says (size, crop, mean, scale), and returns
  // the output for it. `trainer predict` gives the same numbers for the same pixels.
  std::vector<float> Predict(const PredictorImage& image);
  // Reads an image file and predicts as Predict does.
  std::vector<float> PredictFile(const std::string& path);
  // Returns the outputs for `items` inputs that are already prepared. `values` holds one item after
  // the other, each in the order of input_shape(). The channels of images are blue, green, red.
  std::vector<float> Run(const float* values, std::size_t items);

 private:
  struct Loaded;
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace trainer
