#pragma once
// Predictions for the rows of a table, whose columns are prepared as those of the training set.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/inference/inference_net.h"
#include "trainer/storage/table_reader.h"

namespace trainer {

// A comment in the first lines of a deploy file names a set whose columns were the net's inputs.
inline constexpr char kTableComment[] =
    "To prepare tables as its training did: trainer predict --like=";

// Returns the set that the comment of the net's file names, or `like` if it is not empty; "" if
// there is neither. A set that is not in the working folder is looked up in the file's folder.
std::string ResolveLike(const std::string& like, const NetSpec& net);

// Interprets the numbers that a net outputs for a row.
class TableAnswers {
 public:
  // `width`: the numbers of a row. They are one per label column; or of a single label, one per
  // class. Throws kConfig for any other number.
  TableAnswers(const TableFormat& format, const std::string& output, int64_t width);

  // Returns the names of the columns that Text returns.
  std::vector<std::string> Names() const;
  // Scales a row's numbers of scaled labels back.
  void ScaleBack(std::span<float> row) const;
  // Returns the fields of a row that was scaled back: the numbers of several labels; of a class
  // label its class, and a probability per class.
  std::vector<std::string> Text(std::span<const float> row) const;

 private:
  std::string ClassName(size_t index) const;

  const std::vector<TableColumn>& labels_;
  size_t width_;
  bool are_classes_;
};

struct TablePredictionOptions {
  std::string table = "", like = "";
  std::string output = "";  // blob; "": the net's only output
  // "": CSV to `print`. FILE.csv; or FILE.npz, FILE.npy or an HDF5 file with an array of the blob's
  // name.
  std::string out = "";
  bool replace = false;
  int64_t most_bad = 0;
};

struct TablePredictionResult {
  int64_t rows = 0, skipped = 0, bad = 0;
  std::vector<UnknownCategories> unknown;
};

// Runs the net on each row. CSV has first the columns that training ignored (or `row`, the number
// of the row among those that are not left out, from 1), then the answers. Throws kData if the
// table's inputs do not fit the net's; kUsage and kConfig for an output that the net does not have
// or that has no row per item; as TableReader, TableAnswers and the writers.
TablePredictionResult PredictTable(InferenceNet& net, const TablePredictionOptions& options,
                                   const std::function<void(const std::string&)>& print);

}  // namespace trainer
