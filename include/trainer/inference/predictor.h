#pragma once
// Predictions with a trained net inside a C++ program. This is the whole interface of
// libtrainer.so; it needs only C++17 and the standard library. See "From C++" in docs/models.md.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace trainer {

// Thrown by Predictor. what() says which file is wrong, why, and what to try. If it quotes a line
// of the net's file, it has several lines; else one.
class PredictorError : public std::runtime_error {
 public:
  PredictorError(int code, const std::string& message) : std::runtime_error(message), code_(code) {}

  // Returns the code with which the program `trainer` would exit, such as 66 for a missing file:
  // see docs/exit-codes.md.
  int code() const noexcept { return code_; }

 private:
  int code_;
};

// What a Predictor loads: either `model` or `run`.
struct PredictorOptions {
  // The net, as `trainer deploy` writes it, or a model as one file, which has its own weights.
  std::string model = {};
  std::vector<std::string> weights = {};  // files of its weights, loaded in order
  std::string run = {};     // the folder of `trainer train --run=DIR`: its net and best weights
  std::string output = {};  // the blob to return; "": the net's only output
  int batch = 1;            // items that the net computes at once
  int gpu = -1;             // the number of a GPU; -1: the CPU
};

// An image in memory, without ownership: rows from top to bottom, and the channels of a pixel side
// by side.
struct PredictorImage {
  enum class Order { kRgb, kBgr };  // of three channels

  const std::uint8_t* pixels = nullptr;
  int height = 0, width = 0;
  int channels = 3;  // or 1: gray
  Order order = Order::kRgb;
  std::size_t row_bytes = 0;  // from one row to the next; 0: width * channels
};

// A trained net with its weights. All functions throw PredictorError, and nothing else; they print
// nothing and do not end the process. If the process has initialised glog, PredictFile logs the
// first image of 16 bits per channel and the first of several pages. An object may be used by one
// thread at a time; several objects by several threads.
class Predictor {
 public:
  // Loads the net. Layers whose weights are missing are an error. During this call the process logs
  // nothing through glog.
  explicit Predictor(const PredictorOptions& options);
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;

  // Return the shape of one item: {3, 227, 227} is channels, height, width. A detector returns as
  // many rows as it finds, at most those of output_shape(), and needs a batch of 1.
  const std::vector<std::int64_t>& input_shape() const;
  const std::vector<std::int64_t>& output_shape() const;
  // Returns the names of the classes if the run or the one file has them; else nothing.
  const std::vector<std::string>& labels() const;

  // Prepares an image as the comment in the net's file says (size, crop, mean, scale), and returns
  // the output for it. The numbers are those of `trainer predict` for the same pixels.
  std::vector<float> Predict(const PredictorImage& image);
  // Does the same with an image file.
  std::vector<float> PredictFile(const std::string& path);
  // Returns the outputs for `items` inputs that are ready for the net. `values` holds one after the
  // other, each in the order of input_shape(); images are blue, green, red.
  std::vector<float> Run(const float* values, std::size_t items);

 private:
  struct Loaded;
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace trainer
