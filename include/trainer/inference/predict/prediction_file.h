#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/file/file.h"
#include "trainer/inference/predict/classifier.h"
#include "trainer/inference/predict/image_paths.h"

namespace trainer {

// What a file of predictions contains.
struct PredictionFileOptions {
  std::string path;                // *.csv or *.jsonl
  size_t top = 5;                  // classes per image
  std::vector<std::string> names;  // of the classes; empty: classes are numbers
};

// Throws kUsage unless the name ends in .csv or .jsonl.
void RequirePredictionFormat(const std::string& path);

// Writes a row per image to a file. In a .csv file the columns are image, then class_1, name_1 (if
// there are names), score_1, class_2, ..., and at the end exit_code and error, which are 0 and ""
// for an image that was read. In a .jsonl file each line is the ToJson of an image. Rows are
// appended within a second, so an interrupted run loses at most the rows of its last second. Not
// thread-safe.
class PredictionFile {
 public:
  // Creates the file, or replaces what is in it. `classes` is the number of the net's scores.
  // Throws as OpenOwnFile, kUsage, and the errors of FileOps.
  PredictionFile(const PredictionFileOptions& options, int64_t classes);
  PredictionFile(const PredictionFile&) = delete;
  PredictionFile& operator=(const PredictionFile&) = delete;

  // The rows that an interrupted run wrote.
  struct Written {
    int64_t rows = 0, bad = 0;  // `bad`: of images that could not be read
    int exit_code = 0;          // of the first bad one
    // The last image that was read, and its row, without the end of the line; "" if there is none.
    std::string last_image = {}, last_row = {};
  };
  // Continues a file that another run has begun: reads its rows, takes as many images from `paths`,
  // and removes a last row that is not complete. A file that does not exist is created. Throws
  // kData at the row if it is not that of the next image, and kUsage if the columns differ.
  static std::unique_ptr<PredictionFile> Resume(const PredictionFileOptions& options,
                                                int64_t classes, ImagePaths& paths,
                                                Written* written);

  // Throws kUsage unless the file's row of written.last_image has the answer `image`, except for
  // the rounding of another processor.
  void RequireLastAnswer(const Written& written, const ImageScores& image) const;

  // Appends the row of an image. Throws kIo.
  void Add(const ImageScores& image);
  // Writes all rows to the disk. Call it after the last Add. Throws kIo.
  void Finish();

 private:
  using Clock = std::chrono::steady_clock;

  PredictionFile(const PredictionFileOptions& options, int64_t classes, bool truncates);
  // Returns the number of columns between `image` and `exit_code`.
  size_t AnswerColumns() const;
  // Returns the first line of the file; "" for .jsonl.
  std::string Header() const;
  std::string Row(const ImageScores& image) const;
  // Checks the row with this number, from 1 on, against the next image.
  void CheckRow(const std::string& row, int64_t line, const std::string& path,
                Written* written) const;
  // Reads the file; see Resume. Returns the length of its complete rows.
  uint64_t ReadRows(ImagePaths& paths, Written* written) const;
  void Flush();

  PredictionFileOptions options_;
  size_t top_;
  bool is_csv_;
  FileHandle file_;
  std::string buffer_;
  Clock::time_point last_write_ = Clock::now();
};

}  // namespace trainer
