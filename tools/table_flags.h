#pragma once

#include <string>
#include <vector>

#include "trainer/cli/flag_set.h"
#include "trainer/inference/inference_net.h"
#include "trainer/inference/predict/prediction_target.h"
#include "trainer/inference/predict/table_prediction.h"

namespace trainer {

// Holds the flags with which `trainer predict` reads a table.
struct TableFlags {
  std::string like;
  std::string bad_records = "stop";
};

// Declares --like and --bad_records.
void DeclareTable(FlagSet& flags, TableFlags* table);

// Returns whether `words` is a table: a file with a table's name, or any file if --like is given.
// Throws kUsage for --like with several files or with none.
bool NamesTable(const std::vector<std::string>& words, const TableFlags& table);

// Loads the weights, prints the answers for the table or writes them to options.out, and logs what
// was left out. Sets `like` and `most_bad` of the options. Throws kUsage if neither --like nor the
// comment of the net's file describes the columns, and as PredictTable.
void PredictTableFile(InferenceNet& net, const PredictionTarget& target,
                      TablePredictionOptions options, const TableFlags& flags);

}  // namespace trainer
